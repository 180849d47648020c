"""What a real provider did otherwise than expected: of each run, and of each of its answers.

Expected is what the dialect's own writer makes of the same answer. The findings hold names, counts
and statuses, and never a value: a report of them can be shown to anybody.
"""

from collections.abc import Iterator, Mapping

from stumble.selftest.checks import SelftestCheck
from stumble.selftest.provider_runs import ProviderRun
from traces.bodies.content_encoding import decode_content
from traces.conversation.derived_steps import derive_tape_steps
from traces.dialects import find_dialect, json_access
from traces.model import Exchange, find_header
from traces.tape.reader import Tape


def check_provider_run(run: ProviderRun) -> SelftestCheck:
    """Return whether a run did what it is for; None if it was not made."""
    if run.result is None or run.tape is None:
        return SelftestCheck(name=run.name, holds=None, figure=run.why)
    played, steps = run.result, derive_tape_steps(run.tape)
    live = sum(x.answered_by == "live" for x in run.tape.exchanges)
    is_strict, is_faulted = run.name == "strict replay", bool(run.tape.injections)
    fired = is_faulted or not run.name.startswith(("fork", "live"))
    holds = played.exit.code == 0 and not played.diverged and fired
    calls = ", ".join(use.tool for use in steps.tool_uses) or "none"
    return SelftestCheck(
        name=run.name,
        holds=holds and bool(steps.agent_steps) and (live == 0) == is_strict,
        figure=f"exit {played.exit.code}, {len(steps.agent_steps)} answers, {live} live, "
        f"{len(run.tape.injections)} injections, {len(played.diverged)} diverged, calls: {calls}",
    )


def list_differences(tape: Tape) -> tuple[str, ...]:
    """Return what differs from the expectations in the live answers of a tape, each once."""
    found = dict[str, None]()
    for exchange in tape.exchanges:
        if exchange.answered_by == "live":
            found |= dict.fromkeys(_iter_differences(exchange))
    return tuple(found)


def _iter_differences(exchange: Exchange) -> Iterator[str]:
    dialect, answer = find_dialect(exchange.request), exchange.response
    if dialect is None:
        yield f"{exchange.request.method}: no dialect reads this request"
        return
    if answer is None or answer.status >= 400:
        yield f"{dialect.NAME}: status {answer.status if answer else 'of no answer'}"
        return
    read = dialect.parse_model_answer(answer.headers, answer.body)
    if read is None or read.finish is None:
        yield f"{dialect.NAME}: the answer has no finish that is known here"
        return
    if read.usage is None or read.usage.prompt_tokens is None:
        yield f"{dialect.NAME}: the answer has no counts of tokens"
    if find_header(answer.headers, "x-ratelimit-remaining-requests") is None and not any(
        name.lower().startswith("anthropic-ratelimit-") for name, _ in answer.headers
    ):
        yield f"{dialect.NAME}: the answer has no headers of rate limits"
    _, chunks = dialect.write_model_answer(read, stream=False, id="x", created=0)
    ours = set(_iter_names(json_access.load_json_object(b"".join(c.data for c in chunks))))
    body = decode_content(answer.headers, answer.body) or b""
    theirs = set(_iter_names(json_access.load_json_object(body)))
    yield from (f"{dialect.NAME}: field {name} is not known here" for name in sorted(theirs - ours))
    yield from (f"{dialect.NAME}: field {name} is missing" for name in sorted(ours - theirs))


def _iter_names(value: object, path: str = "$") -> Iterator[str]:
    """Yield the path of each member; the items of a list have one path."""
    if isinstance(value, Mapping):
        for name, member in value.items():
            yield f"{path}.{name}"
            yield from _iter_names(member, f"{path}.{name}")
    elif isinstance(value, list):
        for item in value:
            yield from _iter_names(item, f"{path}[]")
