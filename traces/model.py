"""The values everything else moves: what crossed the wire, what was bent, what a run was.

All values are frozen; times are seconds since the trajectory began (monotonic), the wall
clock is kept once per trajectory. Nothing that can be derived is stored: kind, lane, step,
join and verdict are functions elsewhere, so that a better rule improves old tapes.

One thing stands here that the design first left out: `Response.at` and `Response.ended`.
The head of an answer arrives before its first chunk, and a stream ends after its last one;
a replay that has only chunk times cannot perform either of these pauses.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from traces.quick import quick

type Headers = tuple[tuple[str, str], ...]
"""Header fields in wire order and case, decoded as latin-1, which loses no byte."""

type Scalar = str | int | float | bool | None
type Transport = Literal["http", "websocket", "stdio"]
type Source = Literal["live", "recorded", "simulated", "fault", "refused"]
type Side = Literal["request", "response"]
type Place = Literal["http", "mcp", "model-boundary", "model"]
type Condition = Literal["clean", "fault", "sham", "shrink"]
"""`shrink`: a try of `stumble shrink`, chosen because it breaks the run, so part of no rate."""
type World = Literal["fresh", "recorded", "none"]
type Ended = Literal["final", "abstain", "crash", "budget", "harness", "diverged", "replay_miss"]
"""`replay_miss`: a fork whose tools come from the tape asked one for what the tape does not hold;
what the agent would have done is not known."""


IMPORTS = ("vcr", "har", "mitmproxy")
"""The `source` of a tape that was made of what others recorded."""


def header(headers: Headers, name: str) -> str | None:
    """The first value of a field, by case-insensitive name; None where it is absent."""
    wanted, length = name.lower(), len(name)
    for key, value in headers:
        if len(key) == length and key.lower() == wanted:
            return value
    return None


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked. `body` is as on the wire, content encoding included."""

    method: str
    url: str
    headers: Headers = ()
    body: bytes = b""


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Bytes that arrived together, and when."""

    at: float
    data: bytes


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What came back, as it came. A plain body is one chunk; a cut one lacks `ended`."""

    status: int
    headers: Headers = ()
    chunks: tuple[Chunk, ...] = ()
    trailers: Headers = ()
    reason: str = ""
    version: str = "HTTP/1.1"
    at: float = 0.0
    """When the head arrived."""
    ended: float | None = None
    """When the last byte was known to be the last; None if that never happened."""

    @property
    def body(self) -> bytes:
        """All chunks joined, content encoding included."""
        if len(self.chunks) == 1:
            return self.chunks[0].data
        return b"".join(chunk.data for chunk in self.chunks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """`data` in place of `body[start:stop]`; offsets count bytes of the body on the wire."""

    start: int
    stop: int
    data: bytes


def edited(body: bytes, edits: tuple[Edit, ...]) -> bytes:
    """The body after all edits, which are given in order and do not overlap."""
    pieces, at = [], 0
    for edit in edits:
        if not at <= edit.start <= edit.stop <= len(body):
            raise ValueError(f"edit {edit.start}:{edit.stop} does not fit a body of {len(body)}")
        pieces += [body[at : edit.start], edit.data]
        at = edit.stop
    return b"".join([*pieces, body[at:]])


def composed(edits: tuple[Edit, ...], then: tuple[Edit, ...], body: bytes) -> tuple[Edit, ...]:
    """One set of edits for two: the first made this body, the others are of this body."""
    if not edits:
        return then
    grown, made = 0, []
    for edit in edits:
        start = edit.start + grown
        grown += len(edit.data) - (edit.stop - edit.start)
        made.append((start, start + len(edit.data), grown))
    spans = sorted([(start, stop) for start, stop, _ in made] + [(e.start, e.stop) for e in then])
    joined: list[tuple[int, int]] = []
    for start, stop in spans:
        if joined and start <= joined[-1][1]:
            start, stop = joined[-1][0], max(stop, joined.pop()[1])
        joined.append((start, stop))
    return tuple(_original(made, then, body, start, stop) for start, stop in joined)


def _original(
    made: list[tuple[int, int, int]], then: tuple[Edit, ...], body: bytes, start: int, stop: int
) -> Edit:
    """What becomes of body[start:stop], as an edit of what the body was made of."""
    before = [grown for _, end, grown in made if end < start]
    within = [grown for _, end, grown in made if end <= stop]
    own = tuple(
        Edit(start=edit.start - start, stop=edit.stop - start, data=edit.data)
        for edit in then
        if start <= edit.start and edit.stop <= stop
    )
    return Edit(
        start=start - (before[-1] if before else 0),
        stop=stop - (within[-1] if within else 0),
        data=edited(body[start:stop], own),
    )


def edited_chunks(chunks: tuple[Chunk, ...], edits: tuple[Edit, ...]) -> tuple[Chunk, ...]:
    """Chunks of a body after all edits; what replaces bytes of several arrives with the first."""
    out, at = [], 0
    for left, chunk in zip(reversed(range(len(chunks))), chunks, strict=True):
        stop, own = at + len(chunk.data), []
        for edit in edits:
            here = at <= edit.start and (edit.start < stop or not left)
            if here or edit.start < at < edit.stop:
                start, end = max(edit.start, at) - at, min(edit.stop, stop) - at
                own.append(Edit(start=start, stop=end, data=edit.data if here else b""))
        out.append(replace(chunk, data=edited(chunk.data, tuple(own))) if own else chunk)
        at = stop
    return tuple(out)


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request of the agent and what the agent got for it.

    `error` says why no (whole) answer came, as `code` or `code: detail`, where code is one of
    refused, reset, eof, timeout, dns, tls, protocol, cancelled, or damaged where the tape has
    lost part of the answer. It is another fact than a 500, and both stand together when an
    answer broke off in the middle. Of a WebSocket each message of the agent is one exchange:
    see websocket.py.
    """

    seq: int
    request: Request
    response: Response | None = None
    error: str | None = None
    started: float = 0.0
    connection: int = 0
    stream: int = 0
    transport: Transport = "http"
    answered_by: Source = "live"
    edits: tuple[Edit, ...] = ()
    """What was changed in the request body before it went on; `request` is what was asked."""
    redacted: bool = False
    cascade: bool = False
    """True where a fork was felt in a lane that it was not made in, so that this went live."""
    pinned: tuple[str, ...] = ()
    """Call ids whose recorded results went on in the place of those of this run."""

    @property
    def forwarded(self) -> Request:
        """The request as it went on to whoever answered it."""
        if not self.edits:
            return self.request
        body = edited(self.request.body, self.edits)
        headers = tuple(
            (key, str(len(body)) if key.lower() == "content-length" else value)
            for key, value in self.request.headers
        )
        return replace(self.request, headers=headers, body=body)

    def got(
        self, response: Response | None, error: str | None, answered_by: Source | None = None
    ) -> "Exchange":
        """The same exchange with this for its answer: `replace` in half its time."""
        return Exchange(
            seq=self.seq,
            request=self.request,
            response=response,
            error=error,
            started=self.started,
            connection=self.connection,
            stream=self.stream,
            transport=self.transport,
            answered_by=answered_by or self.answered_by,
            edits=self.edits,
            redacted=self.redacted,
            cascade=self.cascade,
            pinned=self.pinned,
        )

    def later(self, seconds: float) -> "Exchange":
        """The same exchange with its whole answer `seconds` later."""
        if self.response is None:
            return self
        answer = self.response
        ended = None if answer.ended is None else answer.ended + seconds
        chunks = tuple(replace(chunk, at=chunk.at + seconds) for chunk in answer.chunks)
        answer = replace(answer, at=answer.at + seconds, chunks=chunks, ended=ended)
        return replace(self, response=answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is to go wrong, where, and how often: the plan, before anything happened."""

    name: str
    params: Mapping[str, Scalar] = field(default_factory=dict)
    where: Mapping[str, str] = field(default_factory=dict)
    at: Place | None = None
    """Where it strikes; None lets the recording decide (http where the join is strong)."""
    nth: int | None = None
    """Which of the calls that `where` names; None is the first, or what `when` says."""
    when: Mapping[str, Scalar] = field(default_factory=dict)
    """Another trigger, by its name: every=3, probability=0.1, first_write=true."""
    persist: str = "once"
    """Which later calls are struck too, as `name:key=value,...`: burst:n=3, same_args."""
    max_injections: int | None = None
    """How many exchanges it strikes at most; None is no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """The fact that a fault struck: where, what was there, what was put there."""

    id: str
    seq: int
    side: Side
    op: str
    place: Place
    address: str
    family: str = ""
    tool: str | None = None
    call_id: str | None = None
    arguments: str | None = None
    params: Mapping[str, Scalar] = field(default_factory=dict)
    persist: str = "once"
    original: bytes | None = None
    mutated: bytes | None = None
    edits: tuple[Edit, ...] = ()
    error_channel: Literal["http", "jsonrpc", "flag", "text", "none"] = "none"
    rendered: bool = False
    """True where a transport fault had to be shown as the text a client would show."""
    sham: bool = False
    dead: bool | None = None
    """True where the clean run went on with nothing of what a wrong value replaced."""
    detect: Literal["D0", "D1", "D2", "D3", "D4"] | None = None
    """What it would have taken to notice, as the nemesis could tell; None where it could not."""
    repeat_of: str | None = None
    """The first injection of this fault in the run, where it persists and struck again."""


type Class = Literal[
    "recovered",
    "masked",
    "honest_fail",
    "noticed_wrong",
    "silent_wrong",
    "crashed",
    "unreached",
]


type Level = Literal["exact", "format", "rounded", "derived"]
"""How closely what an agent used is the wrong value: said the same, in another form, ..."""
type Claim = Literal[
    "delivered", "partial", "abstained", "asks", "admits_failure", "none", "unknown"
]
"""What an agent says of its own result, right or wrong."""
type MaskedAs = Literal["dead", "overwritten", "default", "lucky"]
"""Why an end state is right that nobody cared for: nothing depends on the value, a later true one
took its place, nothing stood in its place, or none of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One sign that an agent noticed, with the step and the words that prove it."""

    code: Literal["N1", "N2", "N3", "N4", "N5", "N6", "N7", "N8", "N9"]
    step: int
    quote: str
    hard: bool | None
    """False if it may mean something else; None if the clean twins cannot tell."""
    error: float | None = None
    """Probability of showing it so often if the fault made no difference."""
    twins: int = 0
    """How many clean twins show it as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of an injection: a verdict, derived from tapes and kept in the index only.

    None is unknown everywhere: never a pass, and never counted as a failure.
    """

    injection_id: str
    judge_version: int
    twins: tuple[str, ...] = ()
    outcome: Class | None = None
    consumed: bool | None = None
    unreached_reason: str | None = None
    """not_fired, absorbed, ended_before, no_site or undecidable, where consumed is not True."""
    noticed: bool | None = None
    recovered: bool | None = None
    passed: bool | None = None
    claim: Claim | None = None
    """What the agent says of its own result; None if the injection was not consumed."""
    claim_basis: str | None = None
    """What tells the claim: end, form, writes, values, structure or words."""
    claim_evidence: str | None = None
    claims_success: bool | None = None
    """Whether the claim amounts to success; None if that cannot be told."""
    false_failure: bool | None = None
    """True if the end state is right and the agent says that it failed."""
    told_wrong: bool | None = None
    """True if the last answer tells the wrong value, and not as a trouble."""
    noticeable: bool | None = None
    """False for what nobody could have noticed: a delay, a value on which nothing depends, one
    that no tool could have shown to be wrong (D4)."""
    changes_what_model_saw: bool | None = None
    """False if the model was told what a clean twin was told: then only the time differed."""
    notice_error: float | None = None
    """Probability of the strongest sign of noticing if the fault made no difference."""
    first_use_step: int | None = None
    """The step in which the agent first acted on what was wrong; None where it never did."""
    baseline_valid: bool | None = None
    evidence: tuple[str, ...] = ()
    signals: tuple[Signal, ...] = ()
    noticed_soft: bool | None = None
    """Whether there is a soft sign; reported apart, never part of `noticed`."""
    noticed_step: int | None = None
    used_in_write: bool | None = None
    used_in_final: bool | None = None
    level: Level | None = None
    truth_reobserved: int | None = None
    """The step whose tool result showed the true value again; None where none did."""
    reported: bool | None = None
    corrected: bool | None = None
    """True where all use of the wrong value came before the true one was seen, and some did."""
    control_only: bool | None = None
    dead_in_twins: bool | None = None
    """True where no clean twin made anything of what a wrong value replaced."""
    blast_radius: int | None = None
    """How many writes were made with what was wrong."""
    masked_as: MaskedAs | None = None
    passed_given_lie: bool | None = None
    """Of what nobody could have known (D4): whether the end is right if the wrong value is true."""
    steps_after: int | None = None
    """The agent's steps with the struck result before it; with none nothing can be noticed."""
    unsafe_retry: bool | None = None
    """Whether the client itself sent a write again that had been carried out."""
    writes_extra: int | None = None
    """Writes beyond those of the clean twins; below 0 those that are missing."""
    uses: tuple[str, ...] = ()
    """Where the wrong value was used, in words, in the order of the run."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why a field is None, by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a run ended, as far as facts go; verdicts about recovery are derived elsewhere."""

    ended: Ended
    exit_code: int | None = None
    passed: bool | None = None
    """What the verifier said of the final state; None where it did not or could not say."""
    reward: float | None = None
    verifier: str | None = None
    at: float = 0.0
    detail: str | None = None
    state: str | None = None
    """A digest of the end state, as a command of the user's tells it; None where none did."""
    state_text: str = ""
    """The beginning of that state, JSON in its canonical form."""
    state_of: str | None = None
    """A digest of the command: what two commands tell is not to be compared."""
    verifier_of: str | None = None
    """A digest of the commands that judged the end state; None where no command did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A fact that the command of a run told beside its traffic: a stage began, it was graded."""

    at: float
    name: str
    data: Mapping[str, object] = field(default_factory=dict)
    """Plain data, as JSON knows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """Which run a tape holds: the only place with a wall clock and with names."""

    id: str
    recorded_at: float | None
    """Seconds since the epoch when time 0 of the tape was; None where an import does not say."""
    agent: str | None = None
    model: str | None = None
    scenario: str | None = None
    task: str | None = None
    trial: int | None = None
    condition: Condition = "clean"
    world: World = "none"
    seed: int | None = None
    parent: str | None = None
    """The trajectory this one was forked from."""
    forked_at: str | None = None
    """The call id of the fork point in the parent."""
    source: str = "record"
    command: tuple[str, ...] = ()
    warm: bool = False
    tools: Mapping[str, str] = field(default_factory=dict)
    """Which requests a tool makes, as the user said: name to `METHOD path-glob`."""
    equivalent: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Which other tools can say what a tool says, as the user declared; read tools by name."""
    upstreams: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Real base URLs (`[PORT=]URL`) for which one of ours stood, and the variables that said so."""
    rules: tuple[str, ...] = ()
    """What of a request may differ from the recorded one in a replay, as the user said."""
    volatile: int = 1
    """Version of the list of what may differ anyway (`traces.volatile`)."""
    workspace: str | None = None
    """The folder in which the agent worked."""
    snapshot: str | None = None
    """The name of what was in that folder before; None where it was not kept."""
    campaign: str | None = None
    """The campaign this run belongs to; None outside of any."""
    cell: str | None = None
    """Which of the campaign's runs it is: the same cell of two campaigns was asked for alike."""
    experiment: str | None = None
    """The fork or campaign that the run is part of: what its controls share with it."""
    controls: tuple[str, ...] = ()
    """The cells of its controls, as they were planned; empty for all of its experiment."""
    timed: bool = True
    """False for an import of a format without times; those of the tape are only an order then."""

    @property
    def imported(self) -> bool:
        """Whether others recorded it: the tape is whole, and how the run ended is not known."""
        return self.source in IMPORTS
