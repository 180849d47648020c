"""A recording on a real tape, and what a strict replay of it finds for a request."""

from collections.abc import Iterable
from pathlib import Path

from replay.match import BUILT_IN, Index, Match
from replay.player import known
from replay.rules import Rules
from traces.model import Chunk, Exchange, Headers, Request, Response, Trajectory
from traces.redact import KnownSecrets, Redactor
from traces.tape import Tape, Writer, read
from traces.volatile import VERSION

KEY = bytes(32)
"""The key of the user who records and replays."""


def secrets_of(user: bytes = KEY, **variables: str) -> KnownSecrets:
    """The secrets of a user, by the names of their variables."""
    return KnownSecrets({value: (name,) for name, value in variables.items()}, user)


def asked(
    method: str, url: str, body: bytes | str = b"", headers: Headers = (), **fields: str
) -> Request:
    """A request; `fields` are more of its header, with `_` for `-`."""
    more = tuple((name.replace("_", "-"), value) for name, value in fields.items())
    said = body.encode() if isinstance(body, str) else body
    return Request(method=method, url=url, headers=(*headers, *more), body=said)


def recorded(
    path: Path,
    requests: Iterable[Request],
    secrets: KnownSecrets | None = None,
    answers: Iterable[bytes] = (),
) -> Tape:
    """A tape with one exchange for each request; its answer is its number, unless given."""
    told = dict(enumerate(answers))
    run = Trajectory(id="recorded", recorded_at=0.0, volatile=VERSION)
    with Writer(path, run, secrets=secrets or secrets_of()) as tape:
        for seq, request in enumerate(requests):
            at = float(seq)
            chunk = Chunk(at=at, data=told.get(seq, b"%d" % seq))
            answer = Response(status=200, chunks=(chunk,), at=at, ended=at)
            tape.exchange(Exchange(seq=seq, request=request, response=answer, started=at))
    return read(path)


class StrictReplay:
    """One replay of a recording, by a user whose secrets may be others."""

    def __init__(
        self, tape: Tape, secrets: KnownSecrets | None = None, rules: Rules = BUILT_IN
    ) -> None:
        self.index = Index(tape.exchanges, rules, redactions=known(tape))
        self.redactor = Redactor(secrets or secrets_of(), tape.redactions)

    def find(self, request: Request) -> Match | None:
        return self.index.find(request, self.redactor.request)

    def ask(self, request: Request) -> int | None:
        """The seq of the recorded exchange that answers; None if it diverges."""
        found = self.find(request)
        return None if found is None else found.exchange.seq
