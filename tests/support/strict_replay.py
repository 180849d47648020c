"""A recording on a real tape, and the result of a strict replay of it for a request."""

from collections.abc import Iterable
from pathlib import Path

from replay.matching.index import BUILT_IN_RULES, RecordingIndex, RequestMatch
from replay.matching.rules import MatchRules
from replay.player import find_tape_redactions
from traces.conversation.volatile_fields import VOLATILE_VERSION
from traces.model import Chunk, Exchange, Headers, Request, Response, Trajectory
from traces.redaction.fingerprints import KnownSecrets
from traces.redaction.redactor import Redactor
from traces.tape.reader import Tape, read_tape
from traces.tape.writer import TapeWriter

KEY = bytes(32)
"""The key of the user who records and replays."""


def secrets_of(user: bytes = KEY, **variables: str) -> KnownSecrets:
    """Return a user's secrets, by the names of their variables."""
    return KnownSecrets({value: (name,) for name, value in variables.items()}, user)


def asked(
    method: str, url: str, body: bytes | str = b"", headers: Headers = (), **fields: str
) -> Request:
    """Return a request; `fields` are further headers, with `_` for `-`."""
    more = tuple((name.replace("_", "-"), value) for name, value in fields.items())
    said = body.encode() if isinstance(body, str) else body
    return Request(method=method, url=url, headers=(*headers, *more), body=said)


def recorded(
    path: Path,
    requests: Iterable[Request],
    secrets: KnownSecrets | None = None,
    answers: Iterable[bytes] = (),
) -> Tape:
    """Write a tape with one exchange per request; its answer is its number, unless given."""
    told = dict(enumerate(answers))
    run = Trajectory(id="recorded", recorded_at=0.0, volatile=VOLATILE_VERSION)
    with TapeWriter(path, run, secrets=secrets or secrets_of()) as tape:
        for seq, request in enumerate(requests):
            at = float(seq)
            chunk = Chunk(at=at, data=told.get(seq, b"%d" % seq))
            answer = Response(status=200, chunks=(chunk,), at=at, ended=at)
            tape.write_exchange(Exchange(seq=seq, request=request, response=answer, started=at))
    return read_tape(path)


class StrictReplay:
    """One replay of a recording, by a user whose secrets may differ."""

    def __init__(
        self, tape: Tape, secrets: KnownSecrets | None = None, rules: MatchRules = BUILT_IN_RULES
    ) -> None:
        secrets = secrets or secrets_of()
        self.index = RecordingIndex(
            tape.exchanges, rules, redactions=find_tape_redactions(tape), key=secrets.key
        )
        self.redactor = Redactor(secrets, tape.redactions)

    def find(self, request: Request) -> RequestMatch | None:
        return self.index.find(request, self.redactor.redact_request)

    def ask(self, request: Request) -> int | None:
        """Return the seq of the recorded exchange that answers; None if the request diverges."""
        found = self.find(request)
        return None if found is None else found.exchange.seq
