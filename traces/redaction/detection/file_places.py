"""Secrets in statements, settings, files of known form, signed URLs and hashes of passwords."""

import base64
from urllib.parse import unquote_to_bytes

from traces.redaction.detection.secret_place import QUOTE, SPACE, TEXT, SecretPlace
from traces.redaction.detection.value_forms import (
    is_plausible_password,
    is_random_token,
)

_SENTENCE_WORDS = frozenset((12, 15, 18, 21, 24))
"""How many words a sentence of BIP 39 has."""


def _is_hash(value: bytes) -> bool:
    return len(set(value)) >= 10 and (value.lower() != value or value.upper() != value)


def _is_signature(value: bytes) -> bool:
    plain = unquote_to_bytes(value)
    return len(plain) >= 16 and is_random_token(plain.rstrip(b"="))


def is_encoded_login(value: bytes) -> bool:
    """True for base64 of a user's name, a colon and a password."""
    try:
        user, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
    except ValueError:
        return False
    return bool(colon and password) and (user + password).isprintable()


def _is_encoded_key_block(value: bytes) -> bool:
    head = base64.b64decode(value[:64] + b"=" * (-len(value[:64]) % 4))
    return b"PRIVATE KEY" in head


def _is_word_sentence(value: bytes) -> bool:
    words = value.split()
    return len(words) in _SENTENCE_WORDS and len(set(words)) > len(words) // 2


FILE_PLACES = (
    # SQL, PowerShell: `CREATE USER joe PASSWORD 'V'`, `ConvertTo-SecureString "V"`.
    SecretPlace(
        rb"(?i:password|identified" + SPACE + rb"{1,4}(?:with" + SPACE + rb"{1,4}[\w\"'`]{1,40}"
        + SPACE + rb"{1,4})?(?:by|as)|securestring(?:" + SPACE + rb"{1,4}-string)?)"
        + SPACE + rb"{1,4}" + QUOTE,
        TEXT, 6, is_plausible_password, QUOTE,
    ),
    # Settings of Redis, LDAP and Wi-Fi, and lines of a netrc.
    SecretPlace(
        rb"(?:(?:requirepass|masterauth|bindpw|rootpw|login" + SPACE + rb"{1,4}" + TEXT
        + rb"{1,128}" + SPACE + rb"{1,4}password)" + SPACE + rb"{1,4}|(?<!\w)(?:psk|wpa_passphrase"
        rb"|sae_password)" + SPACE + rb"{0,2}=" + SPACE + rb"{0,2})(?:" + QUOTE + rb")?",
        TEXT, 6, is_plausible_password,
    ),
    # Signed URLs.
    SecretPlace(
        rb"(?i:[?&;](?:[\w.-]{0,40}signature|sig)=)", rb"[\w%+/.~-]", 16, _is_signature, kind="k",
        sign=rb"(?i)[?&;](?:[\w.-]*signature|sig)=[\w%+/.~-]{16}",
    ),
    # Lines of a pgpass file: host, port, database, user, password.
    SecretPlace(
        rb"(?:(?<![\w.*:/-])|(?<=\\n))[\w*][\w.*-]{0,64}:(?:\d{2,5}|\*):[\w*-]{1,64}"
        rb":[\w.*@-]{1,64}:",
        rb"[^\s\"'`\\:]", 6, is_plausible_password, rb"(?![^\s\"'`\\])",
        sign=rb"[\w.*-]:(?:\d{2,5}|\*):[\w*-]+:[\w.*@-]+:[^\s:]{6}",
        opening=rb"[\w.*-]:(?:\d{2,5}|\*):[\w*-]+:[\w.*@-]+:",
    ),
    # Hashes of passwords: crypt(5), Django, LDAP, PostgreSQL.
    SecretPlace(
        rb"(?:\$(?:1|2[abxy]?|5|6|7|y|gy|md5|apr1|argon2(?:id|i|d)|scrypt)\$"
        rb"(?:[\w=,./+-]{1,40}\$){0,3}|pbkdf2_sha\d{1,3}\$\d{1,8}\$[\w./+-]{1,64}\$"
        rb"|\{(?:S?SHA(?:256|512)?|S?MD5|CRYPT)\}|SCRAM-SHA-256\$\d{1,8}:[\w+/=]{8,64}\$)",
        rb"[\w./+]", 20, _is_hash, rb"(?![\w./+-])", "k",
        sign=rb"\$(?:1|2[abxy]?|5|6|7|y|gy|md5|apr1|argon2(?:id|i|d)|scrypt)\$[\w=,./$+-]{20}"
        rb"|pbkdf2_sha\d+\$|\{(?:S?SHA(?:256|512)?|S?MD5|CRYPT)\}[\w./+]{20}|SCRAM-SHA-256\$",
    ),
    SecretPlace(
        rb"SCRAM-SHA-256\$\d{1,8}:[\w+/=]{8,64}\$[\w+/=]{20,64}:", rb"[\w+/.]", 20, _is_hash,
        kind="k", sign=rb"SCRAM-SHA-256\$",
    ),
    # A login in base64 (Docker), and a key block in base64 (Kubernetes).
    SecretPlace(
        rb"(?i:\"auth\\{0,15}\")" + SPACE + rb"{0,4}:" + SPACE + rb"{0,4}" + QUOTE,
        rb"[A-Za-z0-9+/]", 8, is_encoded_login, QUOTE, "k",
    ),
    SecretPlace(
        rb"(?=LS0tLS1CRUdJTi)", rb"[A-Za-z0-9+/]", 64, _is_encoded_key_block, kind="m",
        sign=rb"LS0tLS1CRUdJTi", opening=rb"LS0tLS1CRUdJTi",
    ),
    # The sentence of words behind a wallet.
    SecretPlace(
        rb"(?i:mnemonic|(?:seed|recovery|secret|backup)[ _-]?(?:phrase|words))(?:" + QUOTE
        + rb")?" + SPACE + rb"{0,4}[:=]" + SPACE + rb"{0,4}(?:" + QUOTE + rb")?",
        rb"[a-z ]", 40, _is_word_sentence, kind="k",
    ),
)  # fmt: skip
