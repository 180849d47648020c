"""A tape as rows of the store: pure, so that a better rule improves old tapes.

Injections and outcomes are verdicts of another room and are not made here.
"""

from collections.abc import Callable, Iterable, Iterator

from traces.attempted import attempts
from traces.controls import control_group
from traces.failures import PASSED, failures
from traces.model import Ending, Exchange, Trajectory
from traces.relations import clipped, row
from traces.stages import Bill, stages
from traces.step import Usage
from traces.story import Story, ToolUse, over, tell
from traces.tape import Tape

type Rows = dict[str, list[tuple[object, ...]]]
type Price = Callable[[str, Usage], float | None]
"""US dollars for this use of this model; None where no price is known."""

READING = ("GET", "HEAD", "OPTIONS")


def rows(tape: Tape, told: Story | None = None, price: Price = lambda model, usage: None) -> Rows:
    """The rows of one tape, by relation, each a tuple in the order of its schema."""
    told = told or tell(tape)
    usage = list(_usage(tape, told, price))
    return {
        "trajectories": [_trajectory(tape, told, usage)],
        "exchanges": list(_exchanges(tape, told)),
        "steps": list(_steps(tape, told)),
        "tool_calls": list(_tool_calls(tape, told)),
        "messages": list(_messages(tape, told)),
        "usage": usage,
        "stages": list(_stages(tape, told, usage)),
    }


def _trajectory(tape: Tape, told: Story, usage: list[tuple[object, ...]]) -> tuple[object, ...]:
    run, ending = tape.trajectory, tape.ending
    costs = [row[7] for row in usage]
    counts = [(row[3] or 0) + (row[5] or 0) for row in usage]  # type: ignore[operator]
    model = run.model or next((turn.model for turn in told.turns if turn.model), None)
    last = max((over(x) for x in tape.exchanges), default=0.0)
    last = ending.at if ending else last
    return (
        run.id,
        agent_name(run),
        model,
        run.scenario,
        run.task,
        run.trial,
        run.condition,
        run.world,
        run.seed,
        run.parent,
        run.forked_at,
        run.recorded_at,
        run.source,
        len(told.turns),
        ending.passed if ending else None,
        ending.reward if ending else None,
        ending.ended if ending else None,
        sum(costs) if costs and None not in costs else None,  # type: ignore[arg-type]
        last if run.timed else None,
        sum(counts) if counts else None,
        ending.exit_code if ending else None,
        ending.verifier if ending else None,
        None,
        *_forked(tape, told),
        run.campaign,
        run.cell,
        *(_whole(row[column] for row in usage) for column in (3, 4, 5, 6)),
        None,
        run.experiment,
        control_group(run, ending),
        list(run.controls),
        ending.verifier_of if ending else None,
        ending.state if ending else None,
        "verifier" if ending and ending.passed is not None else None,
        _unsaid(ending),
    )


def _unsaid(ending: Ending | None) -> str | None:
    """Why nobody knows whether the end is right; None where somebody does."""
    if ending is None:
        return "the recording has no end"
    if ending.passed is not None:
        return None
    return ending.detail or "no verifier judged the end state"


def _whole(counts: Iterable[object]) -> int | None:
    """The sum of what is known; NULL where nothing is."""
    known = [count for count in counts if isinstance(count, int)]
    return sum(known) if known else None


def _forked(tape: Tape, told: Story) -> tuple[int | None, int | None]:
    """Lanes that a fork cascaded into, and results that were pinned; unknown where none was."""
    if tape.trajectory.forked_at is None:
        return None, None
    felt = {told.placed[x.seq].lane for x in tape.exchanges if x.cascade}
    return len(felt), len(_pinned(tape))


def _pinned(tape: Tape) -> frozenset[str]:
    return frozenset(id for exchange in tape.exchanges for id in exchange.pinned)


def agent_name(run: Trajectory) -> str | None:
    """What the agent is called: its given name, else its script or module, else its program."""
    if run.agent or not run.command:
        return run.agent
    program, *rest = run.command
    name = program.rpartition("/")[2]
    if not rest or not name.startswith(("python", "node", "npx", "uvx")):
        return name
    script = rest[1] if rest[0] == "-m" and len(rest) > 1 else rest[0]
    return name if script.startswith("-") else script.rpartition("/")[2]


def _exchanges(tape: Tape, told: Story) -> Iterator[tuple[object, ...]]:
    timed = tape.trajectory.timed
    for exchange in tape.exchanges:
        placed = told.placed[exchange.seq]
        answer = exchange.response
        offset, length = tape.spans[exchange.seq]
        yield (
            tape.trajectory.id,
            exchange.seq,
            placed.lane,
            placed.kind,
            exchange.transport,
            exchange.request.method,
            exchange.request.url,
            answer.status if answer else None,
            exchange.error,
            exchange.started if timed else None,
            _duration(exchange) if timed else None,
            answer.at - exchange.started if answer and timed else None,
            len(exchange.request.body),
            sum(len(chunk.data) for chunk in answer.chunks) if answer else None,
            len(answer.chunks) if answer else None,
            placed.attempt_of,
            exchange.answered_by,
            str(tape.path),
            offset,
            length,
            exchange.cascade,
        )


def _duration(exchange: Exchange) -> float | None:
    return over(exchange) - exchange.started if exchange.response else None


def _steps(tape: Tape, told: Story) -> Iterator[tuple[object, ...]]:
    for step in told.steps:
        yield (
            tape.trajectory.id,
            step.number,
            step.source,
            clipped(step.message),
            step.model,
            list(step.seqs),
        )


def _tool_calls(tape: Tape, told: Story) -> Iterator[tuple[object, ...]]:
    by_seq = {exchange.seq: exchange for exchange in tape.exchanges}
    struck = {injection.call_id for injection in tape.injections if not injection.sham}
    pinned = _pinned(tape)
    for use in told.uses:
        own = [by_seq[seq] for seq in use.seqs]
        whole = [took for x in own if (took := _duration(x)) is not None]
        yield (
            tape.trajectory.id,
            use.step,
            use.call_id,
            use.tool,
            clipped(use.arguments),
            None if use.result is None else clipped(use.result),
            use.is_error,
            use.place,
            _reads(use, own),
            use.join,
            own[0].seq if own else None,
            sum(whole) if whole and tape.trajectory.timed else None,
            use.call_id in struck,
            len(use.arguments.encode("utf-8", "replace")),
            None if use.result is None else len(use.result.encode("utf-8", "replace")),
            own[-1].answered_by if own else None,
            use.call_id in pinned,
        )


def _reads(use: ToolUse, own: list[Exchange]) -> bool | None:
    """Whether a call changed nothing: as its MCP server says, else by the methods of HTTP."""
    if use.read_only is not None:
        return use.read_only
    return True if own and all(x.request.method in READING for x in own) else None


def _messages(tape: Tape, told: Story) -> Iterator[tuple[object, ...]]:
    """Each message once per lane, at the exchange where it first stands."""
    first: dict[tuple[int, int], tuple[int, str, str]] = {}
    last: dict[tuple[int, int], int] = {}
    for seq, placed in sorted(told.placed.items()):
        if placed.lane is None:
            continue
        for position, message in enumerate(placed.messages):
            key = (placed.lane, position)
            if key not in first:
                first[key] = (seq, message.role, message.content)
            last[key] = seq
    for (lane, position), (seq, role, content) in first.items():
        size = len(content.encode("utf-8", "replace"))
        said = clipped(content)
        yield tape.trajectory.id, seq, position, last[lane, position], role, said, size, lane


def _usage(tape: Tape, told: Story, price: Price) -> Iterator[tuple[object, ...]]:
    for seq, answer in sorted(told.answers.items()):
        usage = answer.usage
        if usage is None:
            continue
        yield (
            tape.trajectory.id,
            seq,
            answer.model,
            usage.prompt_tokens,
            usage.cached_tokens,
            usage.completion_tokens,
            usage.reasoning_tokens,
            price(answer.model, usage) if answer.model else None,
            None,
        )


def _stages(
    tape: Tape, told: Story, usage: list[tuple[object, ...]]
) -> Iterator[tuple[object, ...]]:
    """What the marks say of each stage, with what the models cost in the meantime."""
    if not tape.marks:
        return
    used = {each[1]: each for each in usage}
    bills = [
        _bill(exchange, used.get(exchange.seq))
        for exchange in tape.exchanges
        if told.placed[exchange.seq].kind == "model" and exchange.answered_by != "refused"
    ]
    found = list(stages(tape.marks, bills))
    failed = failures(attempts(found, tape.exchanges, told), PASSED)
    for each in found:
        why = failed.get(str(each["stage"]))
        known = {"failure": why.cause, "failure_evidence": why.evidence} if why else {}
        yield row("stages", {"trajectory_id": tape.trajectory.id, **each, **known})


def _bill(exchange: Exchange, used: tuple[object, ...] | None) -> Bill:
    if used is None:
        return Bill(at=exchange.started)
    prompt, completion, cost = used[3], used[5], used[7]
    return Bill(
        at=exchange.started,
        tokens=(prompt or 0) + (completion or 0),  # type: ignore[operator]
        dollars=cost,  # type: ignore[arg-type]
    )
