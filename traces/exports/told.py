"""A run as it is told to others: of a tape in full, of rows as far as the index keeps it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

import duckdb

from traces.index import agent_name
from traces.step import Usage
from traces.story import tell
from traces.tape import Tape


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call with its result; None where nobody was ever told one."""

    id: str
    tool: str
    arguments: str
    result: str | None
    is_error: bool | None = None
    cut: Mapping[str, int] = field(default_factory=dict)
    """The full size in bytes of `arguments` or `result`, where they stand shortened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a system or user said, or the agent answered."""

    source: str
    message: str
    model: str | None = None
    calls: tuple[Call, ...] = ()
    usage: Usage | None = None
    began: float | None = None
    """Seconds since the run began at which the model was asked; None where nobody knows."""
    over: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A run."""

    id: str
    steps: tuple[Step, ...]
    agent: str | None = None
    model: str | None = None
    recorded_at: float | None = None
    facts: Mapping[str, object] = field(default_factory=dict)
    """What else is known of it: source, scenario, task, passed, reward, ended."""


def of_tape(tape: Tape) -> Told:
    """A recorded run; ValueError where it has no steps."""
    story, run = tell(tape), tape.trajectory
    if not story.steps:
        raise ValueError("it has no steps")
    began = {x.seq: x.started for x in tape.exchanges}
    ending = tape.ending
    steps = tuple(
        Step(
            source=step.source,
            message=step.message,
            model=step.model,
            calls=tuple(
                Call(
                    id=use.call_id,
                    tool=use.tool,
                    arguments=use.arguments,
                    result=use.result,
                    is_error=use.is_error,
                )
                for use in story.uses
                if use.step == step.number
            ),
            usage=step.usage,
            began=began[step.seqs[0]] if run.timed and step.seqs else None,
            over=step.at if run.timed else None,
        )
        for step in story.steps
    )
    facts = {
        "source": run.source,
        "scenario": run.scenario,
        "task": run.task,
        "passed": ending.passed if ending else None,
        "reward": ending.reward if ending else None,
        "ended": ending.ended if ending else None,
    }
    return Told(
        id=run.id,
        steps=steps,
        agent=agent_name(run),
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
_STEPS = f"select trajectory_id, step, source, message, model from steps {_CHOSEN} order by step"
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


def of_rows(connection: duckdb.DuckDBPyConnection, ids: Sequence[str]) -> dict[str, Told]:
    """Imported conversations by id, those that are there; one without steps has none."""
    asked = [list(ids)]
    steps: dict[str, list[tuple[int, str, str | None, str | None]]] = defaultdict(list)
    for id, *step in connection.execute(_STEPS, asked).fetchall():
        steps[id].append(tuple(step))
    calls: dict[tuple[str, int], list[Call]] = defaultdict(list)
    for id, number, *call in connection.execute(_CALLS, asked).fetchall():
        calls[id, number].append(_call(*call))  # in the order of the file
    used: dict[tuple[str, int], Usage] = {}
    for id, seq, prompt, cached, completion, reasoning in connection.execute(
        _USAGE, asked
    ).fetchall():
        used[id, seq] = Usage(
            prompt_tokens=prompt,
            cached_tokens=cached,
            completion_tokens=completion,
            reasoning_tokens=reasoning,
        )
    found = {}
    for id, agent, model, at, *facts in connection.execute(_RUNS, asked).fetchall():
        answers = count(1)
        told = tuple(
            Step(
                source=source,
                message=message or "",
                model=by,
                calls=tuple(calls[id, number]),
                usage=used.get((id, next(answers))) if source == "agent" else None,
            )
            for number, source, message, by in steps[id]
        )
        known = {
            name: value for name, value in zip(_FACTS, facts, strict=True) if value is not None
        }
        found[id] = Told(id=id, steps=told, agent=agent, model=model, recorded_at=at, facts=known)
    return found


def _call(
    id: str,
    tool: str,
    arguments: str,
    result: str | None,
    is_error: bool | None,
    arguments_bytes: int | None,
    result_bytes: int | None,
) -> Call:
    cut = {
        name: size
        for name, text, size in (
            ("arguments", arguments, arguments_bytes),
            ("result", result, result_bytes),
        )
        if text is not None and size is not None and size > len(text.encode("utf-8", "replace"))
    }
    return Call(
        id=id, tool=tool, arguments=arguments or "", result=result, is_error=is_error, cut=cut
    )
