"""Secrets in commands: logins and options for a passphrase.

In the text of a shell and in lists of words (`["curl", "-u", "joe:V"]`).
"""

from traces.redaction.detection.secret_place import QUOTE, SPACE, TEXT, SecretPlace
from traces.redaction.detection.value_forms import is_plausible_password, is_plausible_secret

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
)
_LOGIN = rb"|".join(
    name + rb"\b" + _LINE + rb"{0,120}?" + word + (_LINE + rb"{0,80}?" if word else b"")
    + rb"[ \"']" + option
    for name, word, option in _LOGINS
)  # fmt: skip

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
        + rb"|-pass(?:in|out)?" + _APART + rb"(?:" + QUOTE + rb")?pass:)(?:" + QUOTE + rb")?",
        TEXT, 6, is_plausible_secret, kind="k",
    ),
)  # fmt: skip
