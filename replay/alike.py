"""What a request says, as a key: the same for two that differ only in what does not count.

The key forgives spacing, key order and escapes of JSON, the volatile values of `traces.volatile`,
what the rules of the user name, and the boundary of a multipart body. A secret that has a name
(a variable of the environment) is the same whatever its value is: the key of another user has
another length. Any other secret is its placeholder, which no other value of a run has.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b

from replay.headers import delimiter
from replay.rules import Rules
from traces.canonical import canonical_value, exact_value
from traces.dialects import lens
from traces.model import Request
from traces.reader import Reader
from traces.recode import decoded
from traces.redact import PLACEHOLDER, Redaction
from traces.step import Lens
from traces.tape import digest
from traces.volatile import Drawn, Taken, in_order, result_id

type Blind = Callable[[bytes], bytes]
"""Makes placeholders equal that stand for the same secret, of whatever length."""


def _unchanged(said: bytes) -> bytes:
    return said


def _shortest(said: bytes) -> bytes:
    return PLACEHOLDER.sub(rb"REDACTED\1Z", said)


def blinding(redactions: Iterable[Redaction] | None) -> Blind:
    """Blind to the value of secrets that have a name; of all, where no redactions are known."""
    if redactions is None:
        return _shortest
    named = frozenset(each.tag.encode() for each in redactions if each.names)

    def blind(said: bytes) -> bytes:
        if b"RE" not in said and b"RD" not in said:
            return said
        return PLACEHOLDER.sub(
            lambda found: b"REDACTED%bZ" % found[1] if found[1] in named else found[0], said
        )

    return blind if named else _unchanged


@dataclass(frozen=True, slots=True)
class Meaning:
    """What of a request counts, as a key, and the volatile values that do not."""

    key: bytes
    drawn: tuple[Drawn, ...] = ()


@dataclass(frozen=True, slots=True)
class _Said:
    """A message, or what stands around the messages."""

    said: bytes = b""
    """A hash of what counts of it; nothing where a rule passes over all messages."""
    id: str | None = None
    """Of a result."""
    taken: Taken = field(default_factory=Taken)


class Alike:
    """The keys of requests by what they say, under some rules.

    A model request repeats most of the one before, so only its new messages are looked at.
    """

    def __init__(self, rules: Rules, redactions: Iterable[Redaction] | None = ()) -> None:
        """`redactions` are those of the recording; None for a tape of an earlier version."""
        self._rules = rules
        self._blind = blinding(redactions)
        self._readers: dict[str, Reader[_Said, _Said]] = {}

    def __call__(self, request: Request) -> Meaning | None:
        """The meaning; None where only its very bytes can tell what a request says.

        That is so for a body that is no JSON, or too deep, unless it is multipart, a secret with
        a name stood there or in the URL, or a rule passes over something in the URL.
        """
        body = decoded(request.headers, request.body)
        url = self._blind(self._rules.url(request.url).encode("utf-8", "surrogatepass"))
        drawn: tuple[Drawn, ...] = ()
        try:
            said, drawn = self._read(lens(request), b"" if body is None else body)
        except (ValueError, RecursionError):
            raw = request.body if body is None else body
            said = _parts(request, self._blind(raw))
            if said == raw and url == request.url.encode("utf-8", "surrogatepass"):
                return None
        return Meaning(digest(request.method, url.decode("utf-8", "surrogatepass"), said), drawn)

    def _read(self, dialect: Lens | None, body: bytes) -> tuple[bytes, tuple[Drawn, ...]]:
        if dialect is None or self._rules.needs_whole(dialect):
            read = self._said(dialect, exact_value(body))
            return read.said, tuple(read.taken.drawn)
        whole = self._reader(dialect).read(body)
        parts = (whole.rest, *in_order(whole.items, lambda message: message.id))
        moved = sorted(each for part in parts for each in part.taken.moved)
        said = b"".join([*(part.said for part in parts), *moved])
        return said, tuple(each for part in parts for each in part.taken.drawn)

    def _reader(self, dialect: Lens) -> Reader[_Said, _Said]:
        if dialect.NAME not in self._readers:

            def message(text: bytes) -> _Said:
                value = exact_value(text)
                return self._said(dialect, {dialect.LIST: [value]}, result_id(dialect, value))

            def rest(text: bytes) -> _Said:
                return self._said(dialect, exact_value(text))

            self._readers[dialect.NAME] = Reader(dialect.LIST, message, rest)
        return self._readers[dialect.NAME]

    def _said(self, dialect: Lens | None, value: object, id: str | None = None) -> _Said:
        taken = Taken()
        said = canonical_value(self._rules.body(dialect, value, taken))
        if said == b"{}":
            return _Said(id=id)
        counts = blake2b(self._blind(said), digest_size=16)
        counts.update(taken.places())
        return _Said(counts.digest(), id, taken)


def _parts(request: Request, body: bytes) -> bytes:
    """The parts of a multipart body, whatever parts them; any other body as it is."""
    line = delimiter(request)
    return body if line is None else repr(line.split(body)).encode()
