"""Sentences of the page: each is filled from one row of the question that it names."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from stumble.atlas.query import run_atlas_question

if TYPE_CHECKING:
    import duckdb


class Conclusion(Struct, frozen=True, kw_only=True):
    """A sentence with the columns of a row in braces, and the question that has the row."""

    text: str
    question: str
    row: Mapping[str, object]
    parameters: Mapping[str, int] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """The command that prints the row."""
        given = "".join(f" {key}={value}" for key, value in self.parameters.items())
        return f"stumble atlas sql {self.question}{given}"


_OPUS = {"suite": "terminal-bench-0.1.1", "agent": "droid", "model": "claude-opus-4-1"}
_GEMINI = {
    "agent": "mini-swe-agent on swe-bench-verified",
    "model": "gemini-3-pro-preview",
}

CONCLUSIONS: Sequence[Conclusion] = (
    Conclusion(
        text="Unknown ends move a headline: Droid with Claude Opus 4.1 passes {published_rate:.2%} "
        "of {runs} runs if they count as failed, and {rate:.1%} of those with a known end.",
        question="pass_rates",
        row=_OPUS,
    ),
    Conclusion(
        text="Passing once is not passing always: all five trials pass at {unbiased:.1%} of "
        "{tasks} tasks, and {flaky:.1%} of them both pass and fail (Droid, Claude Opus 4.1).",
        question="pass_power",
        parameters={"k": 5},
        row=_OPUS | {"k": 5},
    ),
    Conclusion(
        text="Half of the runs of Gemini 3 Pro would have failed after {half_life:.0f} steps "
        "({half_life_lo:.0f} to {half_life_hi:.0f}), if each step had the same hazard.",
        question="half_life",
        row=_GEMINI,
    ),
    Conclusion(
        text="The hazard of Gemini 3 Pro is not the same at each step, as far as the ends of runs "
        "show: chi-squared {chi2:.1f} on {df} degrees of freedom. The step of a quiet failure is "
        "unknown, so there is no p value.",
        question="hazard",
        row=_GEMINI,
    ),
    Conclusion(
        text="50 steps would come to {implied:.1%} with a constant hazard, and to {naive:.1%} by "
        "the pass rate and the mean number of steps alone (Gemini 3 Pro).",
        question="implied_steps",
        row=_GEMINI,
    ),
    Conclusion(
        text="A working next call is no sign of recovery: in runs that failed it ends "
        "{local_rate:.1%} of {episodes} episodes of errors (Gemini 3 Pro).",
        question="error_recovery_by_end",
        row=_GEMINI | {"passed": False},
    ),
    Conclusion(
        text="Nor is its absence one of failure: in runs that passed it ends {local_rate:.1%} of "
        "{episodes} episodes (Gemini 3 Pro).",
        question="error_recovery_by_end",
        row=_GEMINI | {"passed": True},
    ),
    Conclusion(
        text="Within the same task, runs with a tool error and runs without differ by "
        "{difference:.3f} in their pass rate ({tasks} tasks, {runs} runs, p = {p:.2f}): too few "
        "to say anything of gpt-4o.",
        question="matched_error_effect",
        row={"suite": "tau-airline", "agent": "tau-bench", "model": "gpt-4o"},
    ),
    Conclusion(
        text="Teams of agents that fail go wrong early: the decisive mistake has the median "
        "position {median_position:.2f}, and {first_third:.1%} are in the first third.",
        question="decisive_mistakes",
        row={"suite": "all"},
    ),
)


def find_conclusion_row(
    connection: "duckdb.DuckDBPyConnection", conclusion: Conclusion
) -> dict[str, object] | None:
    """Return the row that a sentence is filled from; None if its source was not built."""
    rows = run_atlas_question(connection, conclusion.question, **conclusion.parameters)
    wanted = conclusion.row.items()
    return next((row for row in rows if all(row[key] == each for key, each in wanted)), None)


def list_conclusions(connection: "duckdb.DuckDBPyConnection") -> list[tuple[str, str]]:
    """Return each sentence with its command; without those whose row has an unknown figure."""
    found = ((each, find_conclusion_row(connection, each)) for each in CONCLUSIONS)
    filled = []
    for conclusion, row in found:
        if row is None:
            continue
        try:
            filled.append((conclusion.text.format(**row), conclusion.command))
        except TypeError:  # NULL has no format
            continue
    return filled
