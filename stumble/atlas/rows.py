"""Rows of the atlas: runs and tool calls without any of their text.

NULL means unknown. `passed` is the source's own grade; how each source decides it, and what counts
as an error, stands in its recipe.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import asdict

from stumble.atlas.error_class import classify_error
from stumble.atlas.model_names import normalise_model_name
from stumble.atlas.recipe import RunTotal, RunTotals

_TEXT, _INT, _REAL, _BOOL = pa.string(), pa.int64(), pa.float64(), pa.bool_()

RUN_SCHEMA = pa.schema(
    {
        "run_id": _TEXT,
        "source": _TEXT,
        "agent": _TEXT,
        "model": _TEXT,
        "suite": _TEXT,
        "task": _TEXT,
        "trial": _INT,
        "passed": _BOOL,
        "reward": _REAL,
        "ended": _TEXT,  # final, abstain, crash, budget, harness
        "steps": _INT,  # requests to the model; turns of a conversation of several agents
        "seconds": _REAL,  # of the agent
        "tokens": _INT,
        "cost_usd": _REAL,
        "mistake_step": _INT,  # the decisive mistake, as a person dated it, counted from 0
    }
)
CALL_SCHEMA = pa.schema(
    {
        "run_id": _TEXT,
        "call": _INT,  # place in the run, from 1
        "step": _INT,
        "tool": _TEXT,
        "is_error": _BOOL,
        "error_class": _TEXT,  # NULL unless is_error
        "same_as_previous": _BOOL,  # same tool and arguments as the call before
        "recovered_within": _INT,  # calls until one works; NULL: none did, or no error
    }
)


class PublishedCall(Struct, frozen=True, kw_only=True):
    """A tool call as a source has it; its texts are read, and never kept."""

    step: int
    tool: str | None
    arguments: str | None
    result: str | None
    is_error: bool | None


class PublishedRun(Struct, frozen=True, kw_only=True):
    """A run as a source has it. Fields are those of RUN_SCHEMA."""

    run_id: str
    agent: str | None
    model: str | None
    suite: str
    task: str
    trial: int | None = None
    passed: bool | None = None
    reward: float | None = None
    ended: str | None = None
    steps: int | None = None
    seconds: float | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    mistake_step: int | None = None
    calls: tuple[PublishedCall, ...] = ()


def to_run_row(run: PublishedRun, source: str) -> Mapping[str, object]:
    """Return the row of a run."""
    fields = asdict(run)
    del fields["calls"]
    return {**fields, "source": source, "model": normalise_model_name(run.model)}


def to_call_rows(run: PublishedRun) -> Iterator[Mapping[str, object]]:
    """Yield the rows of a run's calls, in order."""
    for place, call in enumerate(run.calls):
        before = run.calls[place - 1] if place else None
        yield {
            "run_id": run.run_id,
            "call": place + 1,
            "step": call.step,
            "tool": call.tool,
            "is_error": call.is_error,
            "error_class": classify_error(call.result or "") if call.is_error else None,
            "same_as_previous": _is_repeat(call, before),
            "recovered_within": _count_to_recovery(run.calls[place:]) if call.is_error else None,
        }


def sum_runs(runs: Sequence[PublishedRun]) -> RunTotals:
    """Count runs and passed ones by agent and model."""
    named = [(run, (run.agent, normalise_model_name(run.model))) for run in runs]
    counted = Counter(key for _, key in named)
    passed = Counter(key for run, key in named if run.passed)
    return {key: RunTotal(count, passed[key]) for key, count in counted.items()}


def to_tables(runs: Iterable[PublishedRun], source: str) -> tuple[pa.Table, pa.Table]:
    """Return the tables of runs and of calls. Raises ValueError if a run comes twice: with its id,
    or as a trial of the same task by the same agent and model.
    """
    run_rows: list[Mapping[str, object]] = []
    call_rows: list[Mapping[str, object]] = []
    seen: set[object] = set()
    for run in runs:
        names = {run.run_id, (run.agent, run.model, run.suite, run.task, run.trial or run.run_id)}
        if not seen.isdisjoint(names):
            raise ValueError(f"{source}: run {run.run_id} comes twice")
        seen |= names
        run_rows.append(to_run_row(run, source))
        call_rows += to_call_rows(run)
    return (
        pa.Table.from_pylist(run_rows, schema=RUN_SCHEMA),
        pa.Table.from_pylist(call_rows, schema=CALL_SCHEMA),
    )


def _is_repeat(call: PublishedCall, before: PublishedCall | None) -> bool | None:
    if before is None:
        return False
    if call.arguments is None or before.arguments is None:
        return None
    return (call.tool, call.arguments) == (before.tool, before.arguments)


def _count_to_recovery(calls: Sequence[PublishedCall]) -> int | None:
    """Return how many calls after the first of these one works; unknown results are no success."""
    later = enumerate(calls)
    return next((n for n, each in later if each.is_error is False), None)
