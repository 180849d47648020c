"""Secrets after names that assignments do not know: other endings, types, sentences, tables."""

from traces.redaction.detection.assignments import KEY_NAMES, PASSWORD_NAMES, TOKEN_NAMES
from traces.redaction.detection.secret_place import (
    QUOTE,
    SPACE,
    TEXT,
    SecretPlace,
    widen_pattern,
)
from traces.redaction.detection.value_forms import (
    is_plausible_password,
    is_plausible_secret,
    is_random_token,
    is_spoken_password,
)


def _match_in_any_escape(word: str) -> bytes:
    """Return a pattern of the word in UTF-8, with escapes of JSON, and with those of URLs."""
    escapes = (
        word.encode(),
        b"".join(
            letter.encode() if letter.isascii() else rb"\\{1,15}u%04x" % ord(letter)
            for letter in word
        ),
        b"".join(
            bytes((byte,)) if byte < 128 else rb"%%(?:25)*%02x" % byte for byte in word.encode()
        ),
    )
    return b"|".join(escapes)


def _end_with(word: bytes, befores: bytes) -> bytes:
    """Return a pattern that is true after the word, if one of the others is before it."""
    return b"|".join(
        rb"(?<=%b%b%b)" % (before, separator, word)
        for before in befores.split(b"|")
        for separator in (b"", b"[_-]")
    )


_NAME = (  # one set of first characters, so that the search can skip to them
    rb"[PpSsTtKk](?i:(?<=p)assw(?:or)?d|(?<=p)wd|(?<=s)ecret|(?<=t)oken(?:(?<![a-z0-9_-]token)|"
    + _end_with(b"token", TOKEN_NAMES) + rb")|(?<=k)ey(?:" + _end_with(b"key", KEY_NAMES) + rb"))"
)  # fmt: skip
_ANY_NAME = (
    rb"(?i:" + PASSWORD_NAMES + rb"|(?:(?:" + TOKEN_NAMES + rb")[_-]?|[^a-z0-9_-]|^)token|(?:"
    + KEY_NAMES + rb")[_-]?key)"
)  # fmt: skip
"""The same without lookarounds."""
_IS = rb"(?:" + QUOTE + rb")?" + SPACE + rb"{0,4}(?:=>|[:=])" + SPACE + rb"{0,4}"
_TYPE = rb":[ ]?[&\w'.]{1,32}(?:[<\[][\w&' ,.|]{1,32}[>\]])?\??(?: ?\| ?\w{1,16})?[ ]?="
_NO_SECRETS = (
    b"id name type kind path url uri host hash sha digest version file dir ref arn date time ttl"
    b" size length count len limit policy expiry expires format prefix alias algorithm status index"
)
_NOT_AFTER = b"".join(
    rb"(?<!%b%b)(?<!%b)" % (b"[_-]" if len(word) < 3 else b"", word, word.capitalize())
    for word in _NO_SECRETS.split()
)
_SUFFIX = rb"(?:[_-][A-Za-z0-9]{1,16}|[A-Z0-9][A-Za-z0-9]{0,15}){1,3}?" + _NOT_AFTER
_FOREIGN_PLAIN = (
    "passwort",
    "kennwort",
    "contrasena",
    "senha",
    "mot_de_passe",
    "wachtwoord",
    "haslo",
)
_FOREIGN = ("contraseña", "hasło", "пароль", "密码", "密碼", "パスワード", "비밀번호")
_FOREIGN_NAMES = b"|".join(
    map(_match_in_any_escape, (*_FOREIGN, *_FOREIGN_PLAIN, *map(str.capitalize, _FOREIGN_PLAIN)))
)
_WORDS = (
    rb"passwor[dt]|passwd|passcode|passphrase|contrasena|mot de passe|senha|wachtwoord|haslo|parola"
    rb"|(?:api|access|secret)[ -]key|(?:access|api|auth) token|"
    + b"|".join(map(_match_in_any_escape, (*_FOREIGN, "Пароль")))
)
"""What people call a password, a key or a token in a sentence."""
_COPULA = (
    rb" ?(?:[:=]|" + _match_in_any_escape("：") + rb")|(?:"
    + b"|".join(map(_match_in_any_escape, "是为為は는은"))
    + rb")| (?:is|was|to|ist|lautet|auf|es|est|a|jest|wynosi|"
    + b"|".join(map(_match_in_any_escape, ("à", "é", "är", "-", "–", "—"))) + rb"):?(?= )"
)  # fmt: skip
_MARK = rb"[*_`\"'\\(\[]"
_SENTENCE = (
    rb"(?i:" + _WORDS + rb")(?:[ *_][^\r\n.,;:|{}<>\"'=\\]{0,40}?)??[*_]{0,3}(?i:" + _COPULA
    + rb")[*_]{0,3} {0,2}" + _MARK + rb"{0,6}"
)  # fmt: skip
_SUFFIXED = _SUFFIX + _IS + rb"(?:" + QUOTE + rb")?"
_TYPED = _TYPE + SPACE + rb"{0,4}[bfru]?" + QUOTE

NAME_PLACES = (
    # `"pass": "V"`, `$dbpass = 'V'`
    SecretPlace(
        rb"(?<![\w.-])(?i:[\w.-]{0,40}?(?<!by)(?<!com)(?<!sur)(?<!tres)(?:pass|passphrase|passcode))"
        rb"(?:" + QUOTE + rb")?\]?" + SPACE + rb"{0,4}(?:=>|[:=])" + SPACE + rb"{0,4}" + QUOTE,
        TEXT, 6, is_plausible_password, QUOTE,
        sign=rb"(?i)pass(?:phrase|code)?[\\\"'`\]\snrt]*(?:=>|[:=])[\\\"'`\snrt]*"
        rb"\S*[0-9!@#$%^&*?~]",
        opening=rb"(?i)pass(?:phrase|code)?[\\\"'`\]\snrt]*(?:=>|[:=])",
    ),
    # `{"contraseña": "V"}`
    SecretPlace(
        QUOTE + rb"(?:" + _FOREIGN_NAMES + rb")" + QUOTE + SPACE + rb"{0,4}:" + SPACE + rb"{0,4}"
        + QUOTE,
        TEXT, 6, is_plausible_password, QUOTE,
    ),
    # `HTTPBasicAuth("joe", "V")`
    SecretPlace(
        rb"(?:BasicAuth|NetworkCredential|UsernamePassword\w{0,24})\(" + SPACE + rb"{0,4}" + QUOTE
        + rb"[\w.@+-]{1,64}" + QUOTE + rb"," + SPACE + rb"{0,4}" + QUOTE,
        TEXT, 6, is_plausible_password, QUOTE,
    ),
    # `<wsse:Password Type="text">V</wsse:Password>`
    SecretPlace(
        rb"<(?:[\w-]{1,32}:)?(?i:\w{0,24}(?:password|passwd|pwd|secret|token|apikey))"
        rb"(?:(?:\s|\\{1,15}[nrt])[^<>]{1,200})?>" + SPACE + rb"{0,16}",
        rb"[^\s\"'`\\<>]", 6, is_plausible_secret, SPACE + rb"{0,16}<", kind="k",
        sign=rb"(?i)<[\w:-]*(?:password|passwd|pwd|secret|token|apikey)(?:[\s\\][^<>]*)?>[^<>]*[0-9]",
        opening=rb"(?i)<[\w:-]*(?:password|passwd|pwd|secret|token|apikey)(?:[\s\\][^<>]*)?>",
    ),
    # `MYSQL_PASS=V`
    SecretPlace(
        rb"(?<![A-Za-z0-9_-])[A-Z0-9_]{0,40}(?:_PASS|PASSPHRASE|_CREDENTIALS?|_PAT|_DSN)=(?:"
        + QUOTE + rb")?",
        TEXT, 8, is_plausible_password,
        sign=rb"(?:_PASS|PASSPHRASE|_CREDENTIALS?|_PAT|_DSN)=[\\\"'`]*\S{6}",
        opening=rb"(?:_PASS|PASSPHRASE|_CREDENTIALS?|_PAT|_DSN)=",
    ),
    # `secret_key_base: "V"`, `API_KEY_2=V`
    SecretPlace(
        _NAME + _SUFFIXED, rb"[\w+/.~-]", 12, is_random_token, rb"(?![\w\(\[{*])",
        sign=widen_pattern(_ANY_NAME + _SUFFIXED) + rb"[\w+/.~-]*[0-9]",
        opening=widen_pattern(_ANY_NAME + _SUFFIXED),
    ),
    # `apiSecret: string = "V"`, `let secret_key: &str = "V"`
    SecretPlace(
        _NAME + _TYPED, TEXT, 6, is_plausible_password, QUOTE,
        sign=widen_pattern(_ANY_NAME + _TYPED) + rb"\S*[0-9!@#$%^&*?~]",
        opening=widen_pattern(_ANY_NAME + _TYPED),
    ),
    # `password=V` on a line of its own (a program would have spaces there); `x_pass: V` with signs.
    SecretPlace(
        rb"(?:^|[\r\n]|\\n)[ \t]{0,16}(?:export )?(?i:[\w.-]{0,40}(?:password|passwd|pwd|pass))"
        rb"(?:=|: {1,2}(?=[^\s\"']{0,64}[!@#$%^&*?~+]))",
        rb"[^\s\"'`\\,;()<>]", 6, is_plausible_password, rb"(?=\Z|[\r\n]|\\{1,15}[nr])",
        sign=rb"(?i)(?:password|passwd|pwd|pass)(?:=|: +)\S{6}",
        opening=rb"(?i)(?:password|passwd|pwd|pass)(?:=|: )",
    ),
    # `pass: V`, `pw = V`
    SecretPlace(
        rb"(?:^|[\r\n\"]|\\n)[ \t]{0,16}(?:- )?"
        rb"(?i:(?:[\w.-]{0,40}[_.-])?(?:pass(?:phrase|code)?|pw))"
        rb"(?::| =) {1,2}",
        rb"[^\s\"'`\\,;()<>]", 8, is_random_token, rb"(?=\Z|[\r\n\"]|\\{1,15}[nr\"])",
        sign=rb"(?i)(?:pass(?:phrase|code)?|pw)(?::| =) +\S*[0-9]",
        opening=rb"(?i)(?:pass(?:phrase|code)?|pw)(?::| =) ",
    ),
    # `os.Setenv("DB_PASS", "V")`
    SecretPlace(
        rb"\(" + SPACE + rb"{0,4}" + QUOTE + rb"[\w.-]{0,40}(?i:pass)" + QUOTE + rb"," + SPACE
        + rb"{0,4}" + QUOTE,
        TEXT, 8, is_plausible_password, QUOTE,
    ),
    # `['Authorization: Bearer V']`
    SecretPlace(
        rb"(?i:authorization)(?:" + QUOTE + rb")?" + SPACE + rb"{0,4}[:=,]" + SPACE + rb"{0,4}(?:"
        + QUOTE + rb")?(?i:bearer|token|basic) {1,2}",
        rb"[\w.~+/=-]", 8, is_random_token, kind="b",
    ),
    # `| password | V |`, `**API key:** V`
    SecretPlace(
        rb"(?:\|[ *_`]{0,8}(?i:[\w -]{0,24}(?:" + _WORDS + rb"|secret))[ *_`]{0,8}\|[ *_`]{0,8}"
        rb"|\*\*(?i:[\w -]{0,24}(?:" + _WORDS + rb"|secret|token))(?::\*\*|\*\*:)[ *_`]{0,8})",
        rb"[^\s\"'`\\|*]", 6, is_plausible_password,
    ),
    # `The password of the router is V`
    SecretPlace(
        _SENTENCE, rb"(?:[^\s\"'`\\,;<>|().]|\.(?=\w))", 8, is_spoken_password, rb"(?!\.\.)",
        sign=widen_pattern(_SENTENCE) + rb"\S*[0-9]",
    ),
)  # fmt: skip
