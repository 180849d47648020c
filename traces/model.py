"""Values used everywhere: exchanges, faults, injections, outcomes, trajectories.

All values are frozen. Times are seconds since the trajectory began (monotonic); the wall clock is
stored once per trajectory. Nothing that can be derived is stored: kind, lane, step, join and
verdict are functions elsewhere, so that a better rule improves old tapes.

`Response.at` is the time of the head and `Response.ended` the end of the stream: chunk times alone
cannot reproduce the pauses before the first chunk and after the last one.
"""

from collections.abc import Iterator, Mapping
from copy import replace
from dataclasses import dataclass
from typing import Literal

from msgspec import Struct, field

from traces.bodies.chained_body import restores_when_read
from traces.value_names import rename_text, rename_url

type Headers = tuple[tuple[str, str], ...]
"""Header fields in wire order and case, decoded as latin-1, which loses no byte."""

type Scalar = str | int | float | bool | None
type Transport = Literal["http", "websocket", "stdio"]
type AnswerSource = Literal["live", "recorded", "simulated", "fault", "refused"]
type Side = Literal["request", "response"]
type Place = Literal["http", "mcp", "model-boundary", "model"]
type Condition = Literal["clean", "fault", "sham", "shrink"]
"""`shrink`: a trial of `stumble shrink`, chosen because it breaks the run, so no rate counts it."""
type World = Literal["fresh", "recorded", "none"]
type EndReason = Literal[
    "final", "abstain", "crash", "budget", "harness", "diverged", "replay_miss"
]
"""`replay_miss`: a fork that replays its tools made a call that the tape does not contain, so the
agent's further behaviour is unknown."""

ENDINGS_UNKNOWN: tuple[EndReason, ...] = ("harness", "diverged", "replay_miss")
"""Endings that do not depend on the agent: neither pass nor crash."""
JUDGE_VERSION = 13
"""The version of the judge's rules, by which the index knows verdicts to make again.

1: N1, N2 and N7. 2: all signals, taint, explanation of right end states. 3: the claim and all
signals are compared with the clean twins, by rate if they are random; reasoning is read. 6: without
twins, a claim needs two readers, one of them trained. 8: an answer that came to its finish is
whole, though its client left before the stream ended. 9: exit codes are learnt from results, JSON
without an error proves no success, calls with equal ids are several. 10: writes are known by tool
and sub-command, an open end is no answer. 11: notice is a probability against habits, corrections
count in the whole run, a hand-over that names the trouble is one. 13: a result
reached the model if its answer was followed, though the client left before the stream ended."""

IMPORT_SOURCES = ("vcr", "har", "mitmproxy")
"""Values of `Trajectory.source` for tapes converted from recordings of other tools."""


def find_header(headers: Headers, name: str) -> str | None:
    """Return the first value of a field, by case-insensitive name; None if it is absent."""
    wanted, length = name.lower(), len(name)
    for key, value in headers:
        if len(key) == length and key.lower() == wanted:
            return value
    return None


@restores_when_read("body")
@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request. `body` is as on the wire, content encoding included.

    That of a tape may be given as a ChainedBody, which is restored each time it is read.
    """

    method: str
    url: str
    headers: Headers = ()
    body: bytes = b""


class Chunk(Struct, frozen=True, kw_only=True):
    """Bytes that arrived together, and their time of arrival."""

    at: float
    data: bytes


class Response(Struct, frozen=True, kw_only=True):
    """A response as received. A plain body is one chunk; a truncated one lacks `ended`."""

    status: int
    headers: Headers = ()
    chunks: tuple[Chunk, ...] = ()
    trailers: Headers = ()
    reason: str = ""
    version: str = "HTTP/1.1"
    at: float = 0.0
    """Time at which the head arrived."""
    ended: float | None = None
    """Time at which the body was known to be complete; None if it never was."""

    @property
    def body(self) -> bytes:
        """All chunks joined, content encoding included."""
        if len(self.chunks) == 1:
            return self.chunks[0].data
        return b"".join(chunk.data for chunk in self.chunks)


class BodyEdit(Struct, frozen=True, kw_only=True):
    """`data` replaces `body[start:stop]`; offsets count bytes of the body on the wire."""

    start: int
    stop: int
    data: bytes


def apply_body_edits(body: bytes, edits: tuple[BodyEdit, ...]) -> bytes:
    """Return the body after all edits; raise ValueError if one overlaps, is out of order or
    range."""
    pieces, at = [], 0
    for edit in edits:
        if not at <= edit.start <= edit.stop <= len(body):
            raise ValueError(f"edit {edit.start}:{edit.stop} does not fit a body of {len(body)}")
        pieces += [body[at : edit.start], edit.data]
        at = edit.stop
    return b"".join([*pieces, body[at:]])


def compose_body_edits(
    edits: tuple[BodyEdit, ...], then: tuple[BodyEdit, ...], body: bytes
) -> tuple[BodyEdit, ...]:
    """Merge two sets of edits: `edits` produced `body`, and `then` apply to `body`."""
    if not edits:
        return then
    growth, applied = 0, []
    for edit in edits:
        start = edit.start + growth
        growth += len(edit.data) - (edit.stop - edit.start)
        applied.append((start, start + len(edit.data), growth))
    spans = sorted(
        [(start, stop) for start, stop, _ in applied] + [(e.start, e.stop) for e in then]
    )
    joined: list[tuple[int, int]] = []
    for start, stop in spans:
        if joined and start <= joined[-1][1]:
            start, stop = joined[-1][0], max(stop, joined.pop()[1])
        joined.append((start, stop))
    return tuple(_map_edit_to_original(applied, then, body, start, stop) for start, stop in joined)


def _map_edit_to_original(
    made: list[tuple[int, int, int]], then: tuple[BodyEdit, ...], body: bytes, start: int, stop: int
) -> BodyEdit:
    """Return the result of `then` on body[start:stop], as one edit of the original body."""
    growths_before = [growth for _, end, growth in made if end < start]
    growths_within = [growth for _, end, growth in made if end <= stop]
    inner = tuple(
        BodyEdit(start=edit.start - start, stop=edit.stop - start, data=edit.data)
        for edit in then
        if start <= edit.start and edit.stop <= stop
    )
    return BodyEdit(
        start=start - (growths_before[-1] if growths_before else 0),
        stop=stop - (growths_within[-1] if growths_within else 0),
        data=apply_body_edits(body[start:stop], inner),
    )


def apply_edits_to_chunks(
    chunks: tuple[Chunk, ...], edits: tuple[BodyEdit, ...]
) -> tuple[Chunk, ...]:
    """Edit a chunked body; a replacement that spans several chunks arrives with the first."""
    out, at = [], 0
    for remaining, chunk in zip(reversed(range(len(chunks))), chunks, strict=True):
        stop, chunk_edits = at + len(chunk.data), []
        for edit in edits:
            begins_here = at <= edit.start and (edit.start < stop or not remaining)
            if begins_here or edit.start < at < edit.stop:
                start, end = max(edit.start, at) - at, min(edit.stop, stop) - at
                chunk_edits.append(
                    BodyEdit(start=start, stop=end, data=edit.data if begins_here else b"")
                )
        out.append(
            replace(chunk, data=apply_body_edits(chunk.data, tuple(chunk_edits)))
            if chunk_edits
            else chunk
        )
        at = stop
    return tuple(out)


class Exchange(Struct, frozen=True, kw_only=True):
    """One request of the agent and the response it got.

    `error` is the reason for a missing or incomplete response, as `code` or `code: detail`; code is
    one of refused, reset, eof, timeout, dns, tls, protocol, cancelled, or damaged if the tape has
    lost part of the response. It is independent of the status: a response that broke off in the
    middle has both. On a WebSocket each message of the agent is one exchange: see
    bodies/websocket.py.
    """

    seq: int
    request: Request
    response: Response | None = None
    error: str | None = None
    started: float = 0.0
    connection: int = 0
    stream: int = 0
    transport: Transport = "http"
    answered_by: AnswerSource = "live"
    edits: tuple[BodyEdit, ...] = ()
    """Changes to the request body before it was forwarded; `request` is as the agent sent it."""
    redacted: bool = False
    cascade: bool = False
    """True if a fork affected a lane other than the forked one, so that this went live."""
    pinned: tuple[str, ...] = ()
    """Call ids whose recorded results were forwarded in place of this run's results."""
    renamed: tuple[str, ...] = ()
    """Values of the recording, each followed by the one of this run. Of a live request: that of the
    world, which was forwarded in its place, in URL and header by these names, in the body as
    `edits`. Of a recorded answer: that of the client, which stands for it from this request on."""
    substituted: tuple[str, ...] = ()
    """The fields of a live answer whose recorded values the agent got, as `path: live value`."""
    unparsed: bytes = b""
    """What the server sent after the response, or in place of one, that is no part of it: all of a
    head that was cut, what follows the bytes of a body in chunks, what came with the end."""

    @property
    def forwarded(self) -> Request:
        """The request as forwarded, with `edits` applied."""
        renamed = () if self.answered_by == "recorded" else self.renamed
        if not self.edits and not renamed:
            return self.request
        body = apply_body_edits(self.request.body, self.edits)
        headers = tuple(
            (key, str(len(body)) if key.lower() == "content-length" else value)
            for key, value in self.request.headers
        )
        request = replace(self.request, headers=headers, body=body)
        return _rename_values(request, renamed) if renamed else request

    def with_response(
        self, response: Response | None, error: str | None, answered_by: AnswerSource | None = None
    ) -> "Exchange":
        """Return this exchange with another response, in half the time of `replace`."""
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
            renamed=self.renamed,
            substituted=self.substituted,
            unparsed=self.unparsed,
        )

    def with_delay(self, seconds: float) -> "Exchange":
        """Return this exchange with its complete response `seconds` later."""
        if self.response is None:
            return self
        answer = self.response
        ended = None if answer.ended is None else answer.ended + seconds
        chunks = tuple(replace(chunk, at=chunk.at + seconds) for chunk in answer.chunks)
        answer = replace(answer, at=answer.at + seconds, chunks=chunks, ended=ended)
        return replace(self, response=answer)


def _rename_values(request: Request, renamed: tuple[str, ...]) -> Request:
    names = dict(zip(renamed[::2], renamed[1::2], strict=True))
    headers = tuple((key, rename_text(value, names)) for key, value in request.headers)
    return replace(request, url=rename_url(request.url, names), headers=headers)


class Fault(Struct, frozen=True, kw_only=True):
    """A planned fault: what goes wrong, where, and how often."""

    name: str
    params: Mapping[str, Scalar] = field(default_factory=dict)
    where: Mapping[str, str] = field(default_factory=dict)
    at: Place | None = None
    """Place of injection; None lets the recording decide (http if the join is strong)."""
    nth: int | None = None
    """Number of the call among those that `where` matches; None is the first, or see `when`."""
    when: Mapping[str, Scalar] = field(default_factory=dict)
    """Another trigger, by name: every=3, probability=0.1, first_write=true."""
    persist: str = "once"
    """Which later calls are faulted too, as `name:key=value,...`: burst:n=3, same_args."""
    max_injections: int | None = None
    """Maximum number of faulted exchanges; None is no limit."""


class Injection(Struct, frozen=True, kw_only=True):
    """The record of one injection: its place, the original bytes and the injected ones."""

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
    edits: tuple[BodyEdit, ...] = ()
    error_channel: Literal["http", "jsonrpc", "flag", "text", "none"] = "none"
    rendered: bool = False
    """True if a transport fault was delivered as the error text that a client would show."""
    sham: bool = False
    dead: bool | None = None
    """True if nothing later in the clean run used the value that was replaced."""
    detect: Literal["D0", "D1", "D2", "D3", "D4"] | None = None
    """What it takes to detect the fault, as the injector determined; None if it could not."""
    repeat_of: str | None = None
    """The first injection of this fault in the run, if a persistent fault fired again."""


type OutcomeClass = Literal[
    "recovered",
    "masked",
    "honest_fail",
    "noticed_wrong",
    "silent_wrong",
    "crashed",
    "unreached",
]


type ValueSimilarity = Literal["exact", "format", "rounded", "derived"]
"""How closely the value that an agent used matches the wrong one: identical, reformatted, ..."""
type Claim = Literal[
    "delivered", "partial", "abstained", "asks", "admits_failure", "none", "unknown"
]
"""What an agent claims about its own result, right or wrong."""
type MaskedAs = Literal["dead", "overwritten", "default", "lucky"]
"""Why an end state is right although the agent did not recover: nothing depends on the value, a
later true value replaced it, no value took its place, or none of these."""


class NoticeSignal(Struct, frozen=True, kw_only=True):
    """One sign that an agent noticed, with the step and the words that prove it."""

    code: Literal["N1", "N2", "N3", "N4", "N5", "N6", "N7", "N8", "N9"]
    step: int
    quote: str
    hard: bool | None
    """False if it may mean something else; None if the clean twins do not decide it."""
    error: float | None = None
    """Probability of a sign at least this frequent if the fault made no difference."""
    twins: int = 0
    """Number of clean twins that show it as well."""
    of: int = 0
    """Number of clean twins."""
    peers_shown: int = 0
    """Number of other runs with the same fault that show it."""
    peers: int = 0
    """Number of other runs with the same fault, if some clean twins show it."""


class Outcome(Struct, frozen=True, kw_only=True):
    """The verdict on an injection, derived from tapes and stored in the index only.

    None is unknown everywhere: never a pass, and never counted as a failure.
    """

    injection_id: str
    judge_version: int
    twins: tuple[str, ...] = ()
    outcome: OutcomeClass | None = None
    consumed: bool | None = None
    unreached_reason: str | None = None
    """not_fired, absorbed, ended_before, no_site or undecidable, if consumed is not True."""
    noticed: bool | None = None
    recovered: bool | None = None
    passed: bool | None = None
    claim: Claim | None = None
    """What the agent claims about its own result; None if the injection was not consumed."""
    claim_basis: str | None = None
    """Source of the claim: end, form, writes, values, structure or words."""
    claim_evidence: str | None = None
    claims_success: bool | None = None
    """Whether the claim amounts to success; None if that is undecidable."""
    false_failure: bool | None = None
    """True if the end state is right and the agent claims that it failed."""
    told_wrong: bool | None = None
    """True if the last answer states the wrong value, and not as a problem."""
    noticeable: bool | None = None
    """False if nobody could have noticed: a delay, a value on which nothing depends, one that no
    tool could have shown to be wrong (D4)."""
    changes_what_model_saw: bool | None = None
    """False if the model received the same as in a clean twin: then only the time differed."""
    notice_probability: float | None = None
    """Probability that the agent noticed, given its signals and how often its clean twins show
    them; `noticed` is unknown between two thresholds."""
    notice_error: float | None = None
    """Probability of the strongest notice signal if the fault made no difference."""
    first_use_step: int | None = None
    """The step in which the agent first acted on the wrong value; None if it never did."""
    baseline_valid: bool | None = None
    evidence: tuple[str, ...] = ()
    signals: tuple[NoticeSignal, ...] = ()
    noticed_soft: bool | None = None
    """Whether there is a soft signal; reported separately, never part of `noticed`."""
    noticed_step: int | None = None
    used_in_write: bool | None = None
    used_in_final: bool | None = None
    level: ValueSimilarity | None = None
    truth_reobserved: int | None = None
    """The step whose tool result showed the true value again; None if none did."""
    reported: bool | None = None
    corrected: bool | None = None
    """True if the wrong value was used, but only before the true one was seen."""
    control_only: bool | None = None
    dead_in_twins: bool | None = None
    """True if no clean twin used the value that was replaced."""
    blast_radius: int | None = None
    """Number of writes made with the wrong value."""
    masked_as: MaskedAs | None = None
    passed_given_wrong_value: bool | None = None
    """For undetectable faults (D4): whether the end is right if the wrong value is true."""
    steps_after: int | None = None
    """The agent's steps that follow the faulted result; with none nothing can be noticed."""
    unsafe_retry: bool | None = None
    """Whether the client itself repeated a write that had been carried out."""
    writes_extra: int | None = None
    """Writes beyond those of the clean twins; negative if some are missing."""
    double_action: bool | None = None
    """Whether an effect was committed again, by the world's ledger; None without one."""
    lost_action: bool | None = None
    """Whether an effect that every clean twin committed is missing; None without a ledger."""
    obeyed: bool | None = None
    """Whether the agent did what an instruction in the tool's answer asked for; None if that is
    unknown, or if there was none."""
    effect_changes: tuple[str, ...] = ()
    """The effects that were doubled or lost, in words."""
    uses: tuple[str, ...] = ()
    """Where the wrong value was used, in words, in the order of the run."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why a field is None, by field name."""


class RunEnding(Struct, frozen=True, kw_only=True):
    """How a run ended: facts only, verdicts about recovery are derived elsewhere."""

    ended: EndReason
    exit_code: int | None = None
    passed: bool | None = None
    """The verifier's verdict on the final state; None if it gave none."""
    reward: float | None = None
    verifier: str | None = None
    at: float = 0.0
    detail: str | None = None
    state: str | None = None
    """Digest of the end state that the user's command printed; None without one."""
    state_text: str = ""
    """The beginning of that state, as canonical JSON."""
    state_of: str | None = None
    """Digest of that command; the states of two commands are not comparable."""
    verifier_of: str | None = None
    """Digest of the commands that judged the end state; None if none did."""
    effects: Mapping[str, int] = field(default_factory=dict)
    """Committed effects: digest of a key -> how often; valid only if `effects_of` is given."""
    effect_names: Mapping[str, str] = field(default_factory=dict)
    """Digest of a key -> its members in words."""
    effects_of: str | None = None
    """Digest of the ledger that listed them; None without one."""
    effects_unknown: str | None = None
    """Why the ledger could not be read; None if it was."""
    printed: str = ""
    """The last that a program without a model printed, if its output was kept."""


FILE_CHANGED = "~"
"""First character of the digest of a file that a run found and changed, in an observed state."""
OBSERVED_STATE = "observed"
"""`RunEnding.state_of` of an end state that no command printed: the files left in the copy."""


class RunEvent(Struct, frozen=True, kw_only=True):
    """An event that the command of a run reported: a stage began, it was graded."""

    at: float
    name: str
    data: Mapping[str, object] = field(default_factory=dict)
    """Plain JSON data."""


class TerminalEvent(Struct, frozen=True, kw_only=True):
    """Something that happened at an agent's terminal."""

    kind: str
    """`keys`, `size`, `hangup`, or the kind of query that the terminal replied to."""
    at: float
    """Seconds since the terminal was opened."""
    quiet: float
    """Seconds since the agent's last output, or the event before if that was later."""
    printed: bool
    """Whether the agent had printed anything."""
    steps: int
    """Steps of the conversation before it."""
    exchanges: int
    """Requests before it, of any kind."""
    answering: bool
    """Whether an answer of a model was under way."""
    mode: int
    """1 if the agent read whole lines, plus 2 if what is typed was shown."""
    drawn: int = 0
    """Bytes of the agent's output since the input before, or since the conversation went on."""
    size: int = 0
    """Bytes of the keys, or of the reply."""
    rows: int = 0
    columns: int = 0


MAX_INPUT_BYTES = 1 << 22
"""Bytes of input that a tape holds at most."""


class AgentInput(Struct, frozen=True, kw_only=True):
    """What the agent could read from its standard input: a pipe, a file or a terminal."""

    data: bytes
    """All bytes of a pipe or file; the keys that were typed at a terminal."""
    whole: bool = True
    """False if there was more than a tape holds, or lines were typed without echo."""
    terminal: str | None = None
    """The kind of terminal, as in the variable TERM; None if it was none."""
    outputs: tuple[int, ...] = ()
    """Which of standard output (1) and standard error (2) were the terminal."""
    replies: bytes = b""
    """The terminal's replies to queries, one after the other."""
    events: tuple[TerminalEvent, ...] = ()

    @property
    def unplayable(self) -> str | None:
        """Why a run cannot get this input again; None if it can."""
        if self.whole:
            return None
        lost = f"input after its first {len(self.data):,} bytes is"
        if self.terminal is not None and len(self.data) < MAX_INPUT_BYTES:
            lost = "lines typed without echo are"
        return f"{lost} not kept: this can be shown, not replayed"

    def split_events(self) -> Iterator[tuple[TerminalEvent, bytes]]:
        """Yield each event with its bytes: keys of `data`, or a reply."""
        places = {True: 0, False: 0}
        for event in self.events:
            is_keys = event.kind == "keys"
            start = places[is_keys]
            places[is_keys] += event.size
            yield event, (self.data if is_keys else self.replies)[start : start + event.size]


class Trajectory(Struct, frozen=True, kw_only=True):
    """Identifies the run of a tape: the only value with a wall clock and with names."""

    id: str
    recorded_at: float | None
    """Time 0 of the tape in seconds since the epoch; None if an import lacks it."""
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
    """The requests that a tool makes, as the user declared: name to `METHOD path-glob`."""
    equivalent: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Other tools that return the same facts, as the user declared; read tools by name."""
    upstreams: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Real base URLs (`[PORT=]URL`) that local ones replaced, and the variables that set these."""
    rules: tuple[str, ...] = ()
    """What may differ between a replayed request and the recorded one, as the user declared."""
    volatile: int = 1
    """Version of the list of default differences (`traces.conversation.volatile_fields`)."""
    workspace: str | None = None
    """The folder in which the agent worked."""
    snapshot: str | None = None
    """Name of the snapshot of that folder before the run; None if none was stored."""
    campaign: str | None = None
    """The campaign of this run; None outside of any."""
    cell: str | None = None
    """Which of the campaign's runs it is: equal cells of two campaigns have equal parameters."""
    experiment: str | None = None
    """The fork or campaign that the run is part of, shared with its controls."""
    controls: tuple[str, ...] = ()
    """The planned cells of its controls; empty for all of its experiment."""
    seal: str | None = None
    """Digest of the sealed plan of the run; None outside of any."""
    remade: int = 0
    """How many runs left the recording before their fork, and were made again as this one."""
    zone: str | None = None
    """The time zone in which the agent ran, as TZ names it; None if unknown."""
    timed: bool = True
    """False for an import from a format without times: the tape's times are then only an order."""

    @property
    def is_imported(self) -> bool:
        """Whether another tool recorded it: the tape is complete, the run's ending unknown."""
        return self.source in IMPORT_SOURCES
