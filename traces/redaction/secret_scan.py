"""Secret scan: lines of a text with secrets, and whether a file has any; never the values."""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import PurePath

from msgspec import Struct

from traces.redaction.fingerprints import KnownSecrets, RedactionRecord
from traces.redaction.redactor import Redactor

MAX_SCANNED_BYTES = 1 << 24
"""Maximum bytes of a file that are scanned."""
_TEXT = 8192
_CLASSES_BY_NAME = frozenset("nk")
"""Classes of secrets that are recognised only by a name or place."""
_CODE = (
    ".c .cc .cpp .cs .css .go .h .hpp .html .ipynb .java .js .jsx .kt .lua .md .mjs .php .pl .pm"
    " .py .r .rb .rs .rst .scala .sh .sql .swift .ts .tsx .vue .zig .patch .diff"
)
SCANNER_VERSION = 4

SECRET_CLASSES = {
    "a": "Anthropic key",
    "o": "OpenAI-style key",
    "i": "Google API key",
    "g": "GitHub token",
    "s": "Slack token",
    "w": "AWS key id",
    "j": "JSON Web Token",
    "b": "bearer token",
    "m": "private key",
    "n": "value named as a secret",
    "t": "token of a service",
    "k": "known secret or password",
}


class SecretFinding(Struct, frozen=True):
    """One secret in a text: its offset, length and class."""

    start: int
    length: int
    kind: str


class SecretFileScanner:
    """Finds secrets: known values, token formats, named values."""

    def __init__(
        self,
        known: Iterable[str] | KnownSecrets = (),
        seen: Iterable[RedactionRecord] = (),
    ) -> None:
        """`seen` are secrets that were found before: they keep their placeholders."""
        self._known = tuple(sorted(known))
        self._values = {value.encode("utf-8", "surrogateescape") for value in self._known}
        known = known if isinstance(known, KnownSecrets) else self._known
        self._redactor = Redactor(known, seen=seen)
        self.records = list(self._redactor.take_unwritten())
        """The secrets found so far, those of earlier scans first."""

    @property
    def config_digest(self) -> bytes:
        """Changes with the set of known secrets; too short to reveal anything about them."""
        joined = "\0".join(self._known).encode("utf-8", "surrogateescape")
        return b"%d" % SCANNER_VERSION + blake2b(joined, digest_size=2).digest()

    def find(self, data: bytes) -> Iterator[SecretFinding]:
        """Yield the secrets in a text, in order; offsets in UTF-16 are those of its characters."""
        data = _to_utf8(data)
        for start, stop, instead in self._redactor.find_spans(data):
            yield SecretFinding(start, stop - start, _parse_secret_class(instead))

    def has_secret(self, name: str, data: bytes) -> bool:
        """True for a file that should not be stored.

        In source code and prose a value that only its name marks as secret is usually an example,
        and does not count.
        """
        data = _to_utf8(data)
        if b"\0" in data[:_TEXT]:
            return False
        is_code = is_source_file(name)
        for finding in self.find(data):
            value = data[finding.start : finding.start + finding.length]
            if not is_code or finding.kind not in _CLASSES_BY_NAME or value in self._values:
                return True
        return False

    def redact_source(self, name: str, data: bytes) -> bytes | None:
        """Return source code or prose with its secrets replaced, so that a copy of it runs.

        None for another file, and if a secret would be left.
        """
        if not is_source_file(name):
            return None
        clean = self._redactor.redact_bytes(data)
        self.records += self._redactor.take_unwritten()
        return None if self.has_secret(name, clean) else clean


def is_source_file(name: str) -> bool:
    """True for the name of source code or prose."""
    return PurePath(name).suffix.lower() in _CODE.split()


def _to_utf8(data: bytes) -> bytes:
    """Return a text in UTF-16, with or without a byte order mark, in UTF-8; other data as it is."""
    mark, head = data[:2], data[:_TEXT]
    if mark not in (b"\xff\xfe", b"\xfe\xff"):
        odd, even = head[1::2].count(0), head[::2].count(0)
        if min(odd, even) > 0 or max(odd, even) < max(4, len(head) // 4):
            return data
        mark = b"\xff\xfe" if odd else b"\xfe\xff"
    encoding = "utf-16-le" if mark == b"\xff\xfe" else "utf-16-be"
    return data.decode(encoding, "replace").encode("utf-8", "replace")


def _parse_secret_class(instead: bytes) -> str:
    tag = instead.removeprefix(b"REDACTED").removeprefix(b"RD")
    return chr(tag[0]) if tag else "k"
