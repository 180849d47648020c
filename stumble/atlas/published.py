"""Published numbers beside what the atlas computes from the same runs."""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field


class PublishedNumber(Struct, frozen=True, kw_only=True):
    """A number as its authors published it, and the question and row that recompute it."""

    name: str
    published: str
    by: str
    question: str
    row: Mapping[str, object]
    column: str
    parameters: Mapping[str, int] = field(default_factory=dict)
    why: str


def _on_terminal_bench(agent: str, model: str) -> Mapping[str, object]:
    return {"suite": "terminal-bench-0.1.1", "agent": agent, "model": model}


_OPUS = _on_terminal_bench("droid", "claude-opus-4-1")
_GPT_5 = _on_terminal_bench("droid", "gpt-5")
_UNKNOWN = "the same runs; those whose tests gave no result count as failed"
_KNOWN = "runs whose end is not known are left out instead of counted as failed"

PUBLISHED: Sequence[PublishedNumber] = (
    PublishedNumber(
        name="Droid with Claude Opus 4.1 on Terminal-Bench",
        published="58.75 %",
        by="factory.ai",
        question="pass_rates",
        row=_OPUS,
        column="published_rate",
        why=_UNKNOWN,
    ),
    PublishedNumber(
        name="the same, of runs with a known end",
        published="not published",
        by="",
        question="pass_rates",
        row=_OPUS,
        column="rate",
        why=_KNOWN,
    ),
    PublishedNumber(
        name="Droid with GPT-5 on Terminal-Bench",
        published="52.5 %",
        by="factory.ai",
        question="pass_rates",
        row=_GPT_5,
        column="published_rate",
        why=_UNKNOWN,
    ),
    PublishedNumber(
        name="the same, of runs with a known end",
        published="not published",
        by="",
        question="pass_rates",
        row=_GPT_5,
        column="rate",
        why=_KNOWN,
    ),
    PublishedNumber(
        name="gpt-4o on tau-bench airline, pass^1",
        published="42.0 %",
        by="tau-bench, README",
        question="pass_rates",
        row={"suite": "tau-airline", "agent": "tau-bench", "model": "gpt-4o"},
        column="published_rate",
        why="the same runs",
    ),
    PublishedNumber(
        name="gpt-4o on tau-bench airline, pass^4",
        published="20.0 %",
        by="tau-bench, README",
        question="pass_power",
        row={"suite": "tau-airline", "agent": "tau-bench", "model": "gpt-4o", "k": 4},
        parameters={"k": 4},
        column="unbiased",
        why="the same runs",
    ),
    PublishedNumber(
        name="mini-swe-agent with Gemini 3 Pro on SWE-bench Verified",
        published="74 %",
        by="mini-swe-agent, README",
        question="pass_rates",
        row={
            "suite": "swe-bench-verified",
            "agent": "mini-swe-agent",
            "model": "gemini-3-pro-preview",
        },
        column="rate",
        why="371 of 500 are resolved; the published figure is rounded",
    ),
    PublishedNumber(
        name="Errors recovered in runs that passed, and that failed",
        published="95.0 % and 73.5 %",
        by="Snorkel AI, by a model's labels",
        question="error_recovery_by_end",
        row={
            "agent": "mini-swe-agent on swe-bench-verified",
            "model": "gemini-3-pro-preview",
            "passed": False,
        },
        column="local_rate",
        why="failed runs of another agent, and by a rule: a later call worked. A model that labels "
        "runs knows how they end",
    ),
)
