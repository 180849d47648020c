"""Secrets in commands: logins, options for a passphrase, and what is piped to a login.

In the text of a shell and in lists of words (`["curl", "-u", "joe:V"]`).
"""

import re

from traces.redaction.detection.secret_place import QUOTE, SPACE, TEXT, SecretPlace
from traces.redaction.detection.value_forms import (
    is_plausible_password,
    is_plausible_secret,
    is_random_token,
)

_LINE = rb"[^\r\n]"
_APART = rb"(?:[ =]{1,2}|" + QUOTE + rb"," + SPACE + rb"{0,2})"
"""What is between an option and its value."""
_LOGINS = (  # a program, what follows it, and its option for a password
    (rb"sshpass", rb"", rb"-p"),
    (rb"(?:docker|podman|nerdctl|helm|az|oc|cf)", rb"\blogin\b", rb"(?:-p|--password)"),
    (rb"mongo(?:sh|dump|restore|export|import)?", rb"", rb"-p"),
    (rb"redis-cli", rb"", rb"(?:-a|--pass)"),
    (rb"ldap(?:search|add|modify|delete|passwd|whoami)", rb"", rb"-w"),
    (rb"(?:un)?zip", rb"", rb"-P"),
    (rb"7z[ar]?", rb"", rb"-p"),
)
_LOGIN = rb"|".join(
    name + rb"\b" + _LINE + rb"{0,120}?" + word + (_LINE + rb"{0,80}?" if word else b"")
    + rb"[ \"']" + option
    for name, word, option in _LOGINS
)  # fmt: skip

_USER = rb"[\w.@+\\-]{1,64}"
_USER_OPTION = rb"(?:-[uUlD]|--user(?:name)?|/u(?:ser)?)"
_LOGIN_OPTION = rb"(?:-[auU]|--(?:auth|user|creds?|credentials|login))"
_LOGIN_NAME = rb"(?i:credentials?|login)"
_PASSWORD_OPTION = rb"(?:-[pPwW]|-pw|/p(?:ass)?)"
_ASKS_PIPE = (
    rb"(?:\bsudo\b[^\r\n|]{0,40}? (?:-[A-Za-z]{0,6}S|--stdin)\b"
    rb"|--(?:password|passphrase)-(?:stdin|fd)|--with-token\b"
    rb"|\b(?:chpasswd|cryptsetup|smbpasswd|kinit)\b|\bpasswd --stdin)"
)
"""What reads a password from its standard input."""
_ECHO = rb"\b(?:echo|printf)(?: -[neE]{1,3})? {1,2}(?:" + QUOTE + rb")?(?:[\w.-]{1,32}:)?"
_PIPED = rb"[^\s\"'`\\|;&<>()$]"
_OPEN_PIPE = re.compile(
    _ECHO + rb"(" + _PIPED + rb"{0,128})(?:\\{1,15}n?|\\?[\"'`]){0,4} {0,2}(?:\|[^\r\n|]{0,80})?\Z"
)
_LONGEST_PIPE = 320


def _is_given_password(value: bytes) -> bool:
    """True for all but a placeholder, as the place itself shows that it is a password."""
    return not re.search(rb"(?i)pass|pwd|token|secret|your", value)


def find_open_pipe(data: bytes) -> int:
    """Return the offset of a text at the end that may be piped to a login; len(data) if none is."""
    tail = data[-_LONGEST_PIPE:]
    if b"echo " not in tail and b"printf " not in tail:
        return len(data)
    match = _OPEN_PIPE.search(tail)
    return len(data) - len(tail) + match.start(1) if match and match[1] else len(data)


COMMAND_PLACES = (
    SecretPlace(
        rb"curl\b" + _LINE + rb"{0,120}?[ \"'](?:-u|--user|--proxy-user)" + _APART
        + rb"(?:" + QUOTE + rb")?[\w.@+%-]{1,64}:",
        TEXT, 6, is_plausible_password, kind="k",
        sign=rb"curl\b[^\r\n]*[ \"'](?:-u|--user|--proxy-user)",
    ),
    SecretPlace(
        rb"mysql(?:dump|admin|import|show)?\b" + _LINE + rb"{0,120}?[ \"']-p", TEXT, 6,
        is_plausible_password, sign=rb"mysql(?:dump|admin|import|show)?\b[^\r\n]*[ \"']-p\S",
    ),
    SecretPlace(
        rb"\b(?:" + _LOGIN + rb")" + _APART + rb"?(?:" + QUOTE + rb")?",
        TEXT, 6, is_plausible_password, kind="k",
    ),
    # `--passphrase V`, `-passin pass:V`
    SecretPlace(
        rb"(?:--(?:[\w-]{0,24}-)?(?:pass|passphrase|passcode)" + _APART
        + rb"|[ \"']-(?:pw|(?:src|dest|new)?(?:store|key)pass)" + _APART
        + rb"|-pass(?:in|out)?" + _APART + rb"(?:" + QUOTE + rb")?pass:)(?:" + QUOTE + rb")?",
        TEXT, 6, is_plausible_secret, kind="k",
    ),
    # `tool -u joe -p V`, `["tool", "-U", "joe", "-P", "V"]`, `tool /u:joe /p:V`
    SecretPlace(
        rb"[ \"']" + _USER_OPTION + rb"(?:" + _APART + rb"|:)(?:" + QUOTE + rb")?" + _USER
        + rb"(?:" + QUOTE + rb")?[ ,][^\r\n|;&]{0,60}?(?<=[ \"'])" + _PASSWORD_OPTION
        + rb"(?:" + _APART + rb"|:)?(?:" + QUOTE + rb")?",
        TEXT, 8, is_random_token, kind="k",
        sign=rb"[ \"']" + _USER_OPTION + rb"[ =:\"',\\]+" + _USER + rb"[^\r\n|;&]*[ \"']"
        + _PASSWORD_OPTION + rb"[ =:\"',\\]*[^\s\"']*[0-9]",
    ),
    # `tool -u joe:V`, `tool --auth joe:V`, `tool -U joe%V`, `credentials: joe:V`
    SecretPlace(
        rb"(?:[ \"']" + _LOGIN_OPTION + _APART + rb"|" + _LOGIN_NAME + rb"(?:" + QUOTE
        + rb")? {0,2}[:=] {0,2})(?:" + QUOTE + rb")?" + _USER + rb"[:%,]",
        rb"[^\s\"'`\\:,]", 8, is_random_token, kind="k",
        sign=rb"(?:[ \"']" + _LOGIN_OPTION + rb"|" + _LOGIN_NAME + rb")[ :=\"',\\]+" + _USER
        + rb"[:%,][^\s\"']*[0-9]",
    ),
    # `echo V | sudo -S ls`, `echo joe:V | chpasswd`
    SecretPlace(
        _ECHO, _PIPED, 5, _is_given_password,
        rb"(?=(?:\\{1,15}n)?(?:" + QUOTE + rb")? {0,2}\|[^\r\n|]{0,80}?" + _ASKS_PIPE + rb")",
        kind="k", sign=rb"(?:echo|printf)[^\r\n]*\|[^\r\n|]*" + _ASKS_PIPE,
    ),
    # `sudo -S ls <<< V`
    SecretPlace(
        _ASKS_PIPE + rb"[^\r\n|]{0,60}?<<< {0,2}(?:" + QUOTE + rb")?(?:[\w.-]{1,32}:)?",
        _PIPED, 5, _is_given_password, kind="k", sign=_ASKS_PIPE + rb"[^\r\n|]*<<<",
    ),
)  # fmt: skip
