"""Before a run: what it is going to need, and whether its model answers at all."""

import csv
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from scenarios.agents.errors import EXIT_CODES
from scenarios.agents.presets import parse_agent_preset
from scenarios.pipeline import compiler
from stumble.errors import HarnessError
from stumble.pipeline.config import PipelineConfig
from stumble.store.open_store import open_indexed_store

COHORT_FILE = Path(compiler.__file__).with_name("cohort.csv")
"""The published runs shipped with stumble."""
QUESTION = "Answer with the word yes, and call no tool."
_OWN_RUNS = """
SELECT seconds, tokens, cost_usd FROM pipeline_runs
WHERE model = ? AND whole AND stage_set = 'T0 T1 T2 T3 T4 T5' AND seconds IS NOT NULL
"""

type RunCost = tuple[float, float | None, float | None]
"""Seconds, tokens and dollars of a run of all stages."""


def forecast_run(asked: PipelineConfig, store: Path) -> Iterator[str]:
    """Yield what published runs and own runs of the model needed, and the limit of this one."""
    yield _describe_costs("published runs of all stages", _read_published_costs())
    if asked.model and (own := _read_own_costs(store, asked.model)):
        yield _describe_costs(f"own runs of {asked.model}", own)
    dollars = asked.limits.get("dollars")
    yield (
        "no limit of dollars (--dollars)"
        if dollars is None
        else (f"at most {dollars:g} dollars for all stages together")
    )


def ask_model(asked: PipelineConfig) -> None:
    """Ask the model of the built-in agent one question. Raises HarnessError if it does not answer.

    Another agent has its own client and its own login, which only the run itself uses.
    """
    preset = parse_agent_preset(asked.agent)
    if preset.name != "builtin":
        return
    command = preset.to_start_command(QUESTION, asked.model).command
    with TemporaryDirectory(prefix="stumble-question-") as folder:
        ran = subprocess.run(
            [*command[:-2], "--max-calls", "1", "--backoff", "0", *command[-2:]],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    if ran.returncode not in (0, EXIT_CODES["budget"]):
        last = (ran.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise HarnessError(f"nothing was run, the model does not answer a question: {last}")


def _read_published_costs() -> list[RunCost]:
    lines = COHORT_FILE.read_text().splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return [
        (float(row["seconds"]), float(row["ramp_tokens"]), float(row["cost_usd"])) for row in rows
    ]


def _read_own_costs(store: Path, model: str) -> list[RunCost]:
    if not store.is_dir():
        return []
    with open_indexed_store(store).open_locked() as connection:
        return connection.execute(_OWN_RUNS, [model]).fetchall()


def _describe_costs(whose: str, costs: Sequence[RunCost]) -> str:
    seconds, tokens, dollars = (
        [each for each in column if each is not None] for column in zip(*costs, strict=True)
    )
    parts = [_describe_range(seconds, 60, "minutes")]
    parts += [_describe_range(tokens, 1e6, "million tokens")] if tokens else []
    parts += [_describe_range(dollars, 1, "dollars")] if dollars else []
    return f"{len(costs)} {whose} took {', '.join(parts)}"


def _describe_range(values: Sequence[float], unit: float, name: str) -> str:
    minimum, middle, most = (each / unit for each in (min(values), median(values), max(values)))
    return f"{minimum:.3g} to {most:.3g} {name} (median {middle:.3g})"
