"""A run as exporters see it: complete from a tape, or from rows as far as the index stores it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count

import duckdb
from msgspec import Struct, field

from traces.conversation.derived_steps import derive_tape_steps
from traces.dialects.types import HostedCall, TokenUsage
from traces.store.hosted_calls import load_hosted_calls
from traces.store.rows import derive_agent_name
from traces.tape.reader import Tape


class ExportedCall(Struct, frozen=True, kw_only=True):
    """A tool call with its result; None if no result was ever returned."""

    id: str
    tool: str
    arguments: str
    result: str | None
    is_error: bool | None = None
    incomplete: bool | None = None
    """True if the answer ended before the arguments did; None if unknown."""
    cut: Mapping[str, int] = field(default_factory=dict)
    """Full size in bytes of `arguments` or `result`, if they are shortened."""


class ExportedStep(Struct, frozen=True, kw_only=True):
    """A message of the system or the user, or a response of the agent."""

    source: str
    message: str
    model: str | None = None
    calls: tuple[ExportedCall, ...] = ()
    usage: TokenUsage | None = None
    started: float | None = None
    """Seconds since the start of the run at which the model was called; None if unknown."""
    ended: float | None = None
    finish: str | None = None
    """Why the response ended, as the provider wrote it."""
    hosted: tuple[HostedCall, ...] = ()


class ExportedRun(Struct, frozen=True, kw_only=True):
    """A run."""

    id: str
    steps: tuple[ExportedStep, ...]
    agent: str | None = None
    model: str | None = None
    recorded_at: float | None = None
    facts: Mapping[str, object] = field(default_factory=dict)
    """Other facts: source, scenario, task, passed, reward, ended."""


def to_exported_run(tape: Tape) -> ExportedRun:
    """Convert a recorded run; ValueError if it has no steps."""
    derived, run = derive_tape_steps(tape), tape.trajectory
    if not derived.steps:
        raise ValueError("it has no steps")
    start_times = {x.seq: x.started for x in tape.exchanges}
    ending = tape.ending
    steps = tuple(
        ExportedStep(
            source=step.source,
            message=step.message,
            model=step.model,
            calls=tuple(
                ExportedCall(
                    id=use.call_id,
                    tool=use.tool,
                    arguments=use.arguments,
                    result=use.result,
                    is_error=use.is_error,
                    incomplete=use.incomplete,
                )
                for use in derived.tool_uses
                if use.step == step.number
            ),
            usage=step.usage,
            started=start_times[step.seqs[0]] if run.timed and step.seqs else None,
            ended=step.at if run.timed else None,
            finish=step.finish,
            hosted=step.hosted,
        )
        for step in derived.steps
    )
    facts = {
        "source": run.source,
        "scenario": run.scenario,
        "task": run.task,
        "passed": ending.passed if ending else None,
        "reward": ending.reward if ending else None,
        "ended": ending.ended if ending else None,
    }
    return ExportedRun(
        id=run.id,
        steps=steps,
        agent=derive_agent_name(run),
        model=run.model or next((step.model for step in steps if step.model), None),
        recorded_at=run.recorded_at,
        facts={name: value for name, value in facts.items() if value is not None},
    )


_CHOSEN = "where trajectory_id in (select unnest(?))"
_RUNS = f"""
    select trajectory_id, agent, model, epoch(recorded_at), source, scenario, task, passed, reward,
        ended
    from trajectories {_CHOSEN}
"""
_STEPS = f"""
    select trajectory_id, step, source, message, model, finish_reason, hosted
    from steps {_CHOSEN} order by step
"""
_CALLS = f"""
    select trajectory_id, step, call_id, tool, arguments, result, is_error, arguments_bytes,
        result_bytes
    from tool_calls {_CHOSEN}
"""
_USAGE = f"""
    select trajectory_id, seq, prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens
    from usage {_CHOSEN}
"""
_FACTS = ("source", "scenario", "task", "passed", "reward", "ended")


def read_exported_runs(
    connection: duckdb.DuckDBPyConnection, ids: Sequence[str]
) -> dict[str, ExportedRun]:
    """Read imported conversations by id; ids that are not in the store are missing.

    A conversation without steps has an empty tuple of them.
    """
    parameters = [list(ids)]
    steps: dict[str, list[tuple[int, str, str | None, str | None, str | None, str | None]]]
    steps = defaultdict(list)
    for id, *step in connection.execute(_STEPS, parameters).fetchall():
        steps[id].append(tuple(step))
    calls: dict[tuple[str, int], list[ExportedCall]] = defaultdict(list)
    for id, number, *call in connection.execute(_CALLS, parameters).fetchall():
        calls[id, number].append(_to_exported_call(*call))  # in file order
    usages: dict[tuple[str, int], TokenUsage] = {}
    for id, seq, prompt, cached, completion, reasoning in connection.execute(
        _USAGE, parameters
    ).fetchall():
        usages[id, seq] = TokenUsage(
            prompt_tokens=prompt,
            cached_tokens=cached,
            completion_tokens=completion,
            reasoning_tokens=reasoning,
        )
    exported = {}
    for id, agent, model, at, *facts in connection.execute(_RUNS, parameters).fetchall():
        usage_numbers = count(1)
        exported_steps = tuple(
            ExportedStep(
                source=source,
                message=message or "",
                model=by,
                calls=tuple(calls[id, number]),
                usage=usages.get((id, next(usage_numbers))) if source == "agent" else None,
                finish=finish,
                hosted=load_hosted_calls(hosted),
            )
            for number, source, message, by, finish, hosted in steps[id]
        )
        known_facts = {
            name: value for name, value in zip(_FACTS, facts, strict=True) if value is not None
        }
        exported[id] = ExportedRun(
            id=id, steps=exported_steps, agent=agent, model=model, recorded_at=at, facts=known_facts
        )
    return exported


def _to_exported_call(
    id: str,
    tool: str,
    arguments: str,
    result: str | None,
    is_error: bool | None,
    arguments_bytes: int | None,
    result_bytes: int | None,
) -> ExportedCall:
    cut = {
        name: size
        for name, text, size in (
            ("arguments", arguments, arguments_bytes),
            ("result", result, result_bytes),
        )
        if text is not None and size is not None and size > len(text.encode("utf-8", "replace"))
    }
    return ExportedCall(
        id=id, tool=tool, arguments=arguments or "", result=result, is_error=is_error, cut=cut
    )


def to_valid_utf8(text: str) -> str:
    """Replace characters that UTF-8 cannot encode: JSON may hold half a surrogate pair."""
    return text.encode("utf-8", "replace").decode()
