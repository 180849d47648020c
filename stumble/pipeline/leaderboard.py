"""The leaderboard: pipeline scores, cost and resilience of each agent and model."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from msgspec import Struct

from stumble.report.model import (
    FigureUnit,
    ReportChart,
    ReportFigure,
    ReportSection,
    ReportTable,
    make_count_figure,
    read_row_count,
    read_row_number,
)
from stumble.store.filter import ReportRow, fetch_view_rows

if TYPE_CHECKING:
    import duckdb

PAPER_COHORT_HINT = (
    "`stumble import --cohort paper` puts the 15 published runs of RAMP beside yours"
)
NO_PIPELINE_RUNS = (
    "No run of the pipeline is in this store. `stumble pipeline run --agent COMMAND` makes one; "
    f"{PAPER_COHORT_HINT}."
)
LEADERBOARD_TERMS = (
    ("stages", "T0 environment, T1 lexer, T2 parser, T3 LLVM IR, T4 optimisation, T5 assembly"),
    ("MR", "mean reward: stage scores weighted 1 2 2 3 3 4, times 1.2 until a stage is not full"),
    ("MR (other weights)", "the same with the weights 1 4 4 3 6 2 of RAMP's code and site"),
    ("MR (Pro boards)", "those weights without the factor 1.2, as RAMP's Pro boards have it"),
    ("tier", "the last stage of an unbroken row of 100s; the median where there are several runs"),
    (
        "unverified",
        "no self-test of its sandbox proved that the agent saw nothing of the run",
    ),
    ("pass", "a stage with a score of 60 or more"),
    ("pass score", "share of 9 points: 1.5 for a passed stage, 1 after one that was not full"),
    ("strict", "a stage counts in full or not at all, and nothing after the first that failed"),
    ("AEI", "RAMP's index: tier and MR against the cohort's best, time, cost and tokens saved"),
    ("gated AEI", "the way from an untouched starter to 100, times what is left of fixed budgets"),
    ("recovered", "of the faults that reached the agent: noticed, and the end state is right"),
    ("silently wrong", "of those: delivered wrong as right, without a sign of notice"),
    ("S(20), S(50)", "the implied chance to end right after so many steps, 2 % with a loud error"),
    ("RAMP tokens", "prompt and completion, with cached and reasoning tokens counted once more"),
)
LEADERBOARD_LEAD = (
    "Pipeline figures are means over clean runs with 95 % intervals over runs; one run has none. "
    "Recovery and survival are of the same agent and model under injected faults."
)
CAUSE_LABELS: Mapping[str | None, tuple[str, str]] = {
    "infrastructure": ("unsettled", "infrastructure: not the agent's"),
    "context": ("noticed_wrong", "context: the conversation was too long"),
    "provider": ("absorbed", "provider: the model did not answer"),
    "budget": ("masked", "budget: used up"),
    "tooling": ("crashed", "tooling: calls or programs that fail"),
    "planning": ("honest_fail", "planning: left undone"),
    "reasoning": ("silent_wrong", "reasoning: done, and wrong"),
    None: ("line", "no evidence of a cause"),
}

ALL_STAGES = "T0 T1 T2 T3 T4 T5"

SCORE_COLUMNS: Mapping[str, tuple[str, FigureUnit]] = {
    **{f"T{k}": (f"t{k}", "points") for k in range(6)},
    "pipeline score": ("pl", "points"),
    "pass score": ("pass_score", "points"),
    "MR (other weights)": ("mr_a", "points"),
    "MR (Pro boards)": ("mr_pro", "points"),
    "T4 by RAMP": ("t4_ramp", "points"),
    "strict": ("e2e_strict", "points"),
}
EFFORT_COLUMNS: Mapping[str, tuple[str, FigureUnit]] = {
    "resurrections": ("resurrections", "count"),
    "zero-shot": ("zero_shot_passes", "count"),
    "grader failed": ("infrastructure_errors", "count"),
    "seconds": ("seconds", "tokens"),
    "prompt": ("prompt_tokens", "tokens"),
    "of that cached": ("cached_tokens", "tokens"),
    "completion": ("completion_tokens", "tokens"),
    "of that reasoning": ("reasoning_tokens", "tokens"),
    "RAMP tokens": ("ramp_tokens", "tokens"),
}


class LeaderboardRows(Struct, frozen=True, kw_only=True):
    """Rows of the pipeline views of a store."""

    rows: tuple[ReportRow, ...]
    completion: tuple[ReportRow, ...]
    attribution: tuple[ReportRow, ...]
    cohorts: tuple[ReportRow, ...]


def read_leaderboard(
    connection: "duckdb.DuckDBPyConnection", cohort: str | None
) -> LeaderboardRows:
    """Read the rows, best MR of each kind of run first; with RAMP's index against a cohort if one
    is named.
    """
    rows = fetch_view_rows(connection, "leaderboard")
    indexed = rows if cohort is None else [_use_cohort_index(row, cohort) for row in rows]
    return LeaderboardRows(
        rows=tuple(sorted(indexed, key=_make_rank_key)),
        completion=tuple(sorted(fetch_view_rows(connection, "completion"), key=_make_stage_key)),
        attribution=tuple(sorted(fetch_view_rows(connection, "attribution"), key=_make_cause_key)),
        cohorts=fetch_view_rows(connection, "cohorts"),
    )


def _use_cohort_index(row: ReportRow, cohort: str) -> ReportRow:
    indexes = row["indexes"] if isinstance(row["indexes"], list) else []
    for each in indexes:
        if each["cohort"] == cohort:
            aei = each["aei"]
            return {
                **row,
                "aei": aei["mean"],
                "aei_lo": aei["lo"],
                "aei_hi": aei["hi"],
                "aei_reason": aei["reason"],
                "aei_cohort": cohort,
                "aei_runs": each["runs"],
                "aei_most": each["most"],
            }
    return row


def _make_rank_key(row: ReportRow) -> tuple[bool, str, float, str]:
    mr, kind = read_row_number(row, "mr"), _find_comparison_kind(row)
    return not row["runs"], kind, 1.0 if mr is None else -mr, _format_agent_model(row)


def _iter_places(rows: Iterable[ReportRow]) -> Iterable[tuple[int, ReportRow]]:
    """Yield each row with its place among those of its kind, from sorted rows."""
    for _, alike in groupby(rows, _find_comparison_kind):
        yield from enumerate(alike, 1)


def _make_stage_key(row: ReportRow) -> tuple[str, str]:
    return _find_comparison_kind(row), str(row["stage"])


def _make_cause_key(row: ReportRow) -> tuple[str, float, str]:
    return _find_comparison_kind(row), -read_row_count(row, "runs"), str(row["cause"])


def _format_agent_model(row: ReportRow) -> str:
    model, agent = row["model"], row["agent"]
    if model and agent:
        return f"{model} ({agent})"
    return str(model or agent or "not named")


def _find_comparison_kind(row: ReportRow) -> str:
    """Return `paper`, or `embedded, guided, no-resurrection`; rows with equal kinds compare."""
    if row.get("cohort"):
        return str(row["cohort"])
    arm = row.get("arm")
    stages = row.get("stage_set")
    words = (
        row.get("workload"),
        row.get("mode"),
        arm if arm != "resurrect" else None,
        f"{stages} only" if stages not in (None, ALL_STAGES) else None,
        "unverified" if row.get("verified") is False else None,
    )
    return ", ".join(str(word) for word in words if word) or "\u2013"


def build_leaderboard_sections(found: LeaderboardRows) -> tuple[ReportSection, ...]:
    """Build the sections: leaderboard, cost against score, collapse along stages, causes."""
    if not found.rows:
        return (ReportSection(name="board", title="Leaderboard", nothing=NO_PIPELINE_RUNS),)
    return (
        _build_scores_section(found),
        _build_cost_reward_section(found),
        _build_collapse_section(found),
        _build_causes_section(found),
        _build_details_section(found),
    )


def build_standings_tables(found: LeaderboardRows) -> tuple[ReportTable, ...]:
    """Build a table of the main figures, each with its interval, for each kind of run: workload,
    mode, arm and stages.
    """
    kinds = groupby(found.rows, _find_comparison_kind)
    return tuple(_build_standings_table(kind, tuple(rows)) for kind, rows in kinds)


def _build_standings_table(kind: str, rows: Sequence[ReportRow]) -> ReportTable:
    return ReportTable(
        caption=f"Agents and models, best mean reward first: {kind}",
        columns=(
            "agent",
            "runs of",
            "runs",
            "tier",
            "MR",
            "AEI",
            "gated AEI",
            "cost",
            "recovered",
            "silently wrong",
            "S(20)",
            "S(50)",
        ),
        rows=tuple(
            (
                f"{place}. {_format_agent_model(row)}",
                _find_comparison_kind(row),
                make_count_figure(read_row_count(row, "runs")),
                _make_tier_figure(row),
                _make_row_figure(row, "mr", "points"),
                _make_row_figure(row, "aei", "points"),
                _make_row_figure(row, "gated_aei", "points"),
                _make_row_figure(row, "cost_usd", "usd"),
                _make_row_figure(row, "recovery_rate", "share", n="judged"),
                _make_row_figure(row, "silent_rate", "share", n="judged"),
                _make_row_figure(row, "survival_20", "share"),
                _make_row_figure(row, "survival_50", "share"),
            )
            for place, row in enumerate(rows, 1)
        ),
        folded=False,
    )


def _make_row_figure(
    row: ReportRow, name: str, unit: FigureUnit, *, n: str | None = None
) -> ReportFigure:
    """Make a figure with its own reason; a single run has no interval."""
    reason = row[f"{name}_reason"]
    value = read_row_number(row, name)
    return ReportFigure(
        value=value,
        unit=unit,
        lo=read_row_number(row, f"{name}_lo"),
        hi=read_row_number(row, f"{name}_hi"),
        n=read_row_count(row, n) if n and value is not None else None,
        reason=str(reason) if reason else None,
        bare=reason == "one_run",
        terse=True,
    )


def _make_tier_figure(row: ReportRow) -> ReportFigure:
    tier, low, high = (read_row_number(row, name) for name in ("tier", "tier_lo", "tier_hi"))
    if tier is None:
        return ReportFigure(value=None, unit="count", reason=str(row["mr_reason"]), terse=True)
    is_single = low == high
    return ReportFigure(
        value=tier,
        unit="tokens",
        lo=None if is_single else low,
        hi=None if is_single else high,
        bare=is_single,
    )


def _build_scores_section(found: LeaderboardRows) -> ReportSection:
    notes = [_describe_cohort(cohort) for cohort in _find_used_cohorts(found)]
    if not found.cohorts:
        notes.append(f"AEI is against a cohort, and there is none: {PAPER_COHORT_HINT}.")
    faulted = [row for row in found.rows if row["mr_faulted"] is not None]
    notes += [
        f"{_format_agent_model(row)}, {_find_comparison_kind(row)}: "
        f"MR {read_row_number(row, 'mr_faulted') or 0:.1f} in "
        f"{read_row_count(row, 'runs_faulted')} "
        f"run{'' if read_row_count(row, 'runs_faulted') == 1 else 's'} "
        "with a fault."
        for row in faulted
    ]
    return ReportSection(
        name="board",
        title="Leaderboard",
        lead=(LEADERBOARD_LEAD,),
        tables=build_standings_tables(found),
        notes=tuple(notes),
    )


def _find_used_cohorts(found: LeaderboardRows) -> Iterable[ReportRow]:
    used = {row["aei_cohort"] for row in found.rows}
    return [cohort for cohort in found.cohorts if cohort["cohort"] in used]


def _describe_cohort(cohort: ReportRow) -> str:
    most = cohort["most"]
    assert isinstance(most, dict)
    columns = (
        ("tier", most["tier"], "{:.0f}"),
        ("MR", most["mr"], "{:.2f}"),
        ("seconds", most["seconds"], "{:,.0f}"),
        ("dollars", most["cost_usd"], "{:,.2f}"),
        ("RAMP tokens", most["tokens"], "{:,.0f}"),
    )
    maxima = ", ".join(f"{form.format(x)} {name}" for name, x, form in columns if x is not None)
    return (
        f"AEI against {cohort['cohort']} "
        f"({read_row_count(cohort, 'runs')} runs), whose most is: {maxima}."
    )


def _build_cost_reward_section(found: LeaderboardRows) -> ReportSection:
    kinds = {
        kind: dots
        for kind, rows in groupby(found.rows, _find_comparison_kind)
        if (dots := tuple(_collect_cost_points(rows)))
    }
    title = "Cost against reward"
    if not kinds:
        return ReportSection(name="cost", title=title, nothing="No run has a known cost above 0.")
    missing = len(found.rows) - sum(map(len, kinds.values()))
    return ReportSection(
        name="cost",
        title=title,
        lead=(
            "Dollars per run on a logarithmic scale; a dot's number is its place in its table. "
            "Nobody scores more for less than those that the line goes through.",
        ),
        charts=tuple(
            ReportChart(
                drawing="bargains",
                of=f"{len(dots)} agent{'' if len(dots) == 1 else 's'} with a model: {kind}",
                says="; ".join(
                    f"{dot.place}. {dot.who}: {dot.score:.1f} for ${dot.cost:,.2f}" for dot in dots
                ),
                rows=tuple(dot.to_row(dots) for dot in dots),
            )
            for kind, dots in kinds.items()
        ),
        legend=(
            ("naive", "published"),
            ("faulted", "of this store"),
            ("honest_fail", "nobody does better for less"),
        ),
        notes=(f"{missing} without a known cost are left out.",) if missing else (),
    )


class _CostScorePoint(Struct, frozen=True, kw_only=True):
    """An agent and model as a point of cost and score."""

    place: int
    who: str
    cost: float
    score: float
    lo: float | None
    hi: float | None
    published: bool

    def to_row(self, among: "Iterable[_CostScorePoint]") -> ReportRow:
        """Return the row to draw; `best` if no other scores more at no higher cost."""
        beaten = any(dot.cost <= self.cost and dot.score > self.score for dot in among)
        return {
            "label": str(self.place),
            "cost": self.cost,
            "score": self.score,
            "lo": self.lo,
            "hi": self.hi,
            "published": self.published,
            "best": not beaten,
        }


def _collect_cost_points(rows: Iterable[ReportRow]) -> Iterable[_CostScorePoint]:
    for place, row in enumerate(rows, 1):
        cost, score = read_row_number(row, "cost_usd"), read_row_number(row, "mr")
        if cost and score is not None:
            yield _CostScorePoint(
                place=place,
                who=_format_agent_model(row),
                cost=cost,
                score=score,
                lo=read_row_number(row, "mr_lo"),
                hi=read_row_number(row, "mr_hi"),
                published=bool(row["cohort"]),
            )


def _build_collapse_section(found: LeaderboardRows) -> ReportSection:
    return ReportSection(
        name="collapse",
        title="Collapse along the stages",
        lead=(
            "The share of runs that score 60 or more at each stage, with its 95 % interval, and of "
            "those that did so at every stage up to it. Runs in which the grader failed at a stage "
            "are left out there.",
        ),
        charts=tuple(
            _make_collapse_chart(kind, rows) for kind, rows in _group_by_kind(found.completion)
        ),
        legend=(("observed", "passes this stage"), ("constant", "passes all stages up to it")),
        tables=(
            ReportTable(
                caption="Runs that pass each stage",
                columns=("stage", "runs of", "runs", "pass", "pass, all", "up to here", "full"),
                rows=tuple(
                    (
                        str(row["stage"]),
                        _find_comparison_kind(row),
                        make_count_figure(read_row_count(row, "runs")),
                        ReportFigure(
                            value=read_row_number(row, "rate"),
                            lo=read_row_number(row, "lo"),
                            hi=read_row_number(row, "hi"),
                            reason=str(row["reason"]) if row["reason"] else None,
                        ),
                        ReportFigure(value=read_row_number(row, "rate_all"), bare=True),
                        make_count_figure(read_row_count(row, "serial")),
                        make_count_figure(read_row_count(row, "full")),
                    )
                    for row in found.completion
                ),
            ),
        ),
    )


def _make_collapse_chart(kind: str, rows: Sequence[ReportRow]) -> ReportChart:
    chart_rows = tuple(
        {
            "stage": row["stage"],
            "rate": read_row_number(row, "rate"),
            "lo": read_row_number(row, "lo"),
            "hi": read_row_number(row, "hi"),
            "serial": read_row_number(row, "serial_rate"),
            "text": ReportFigure(value=read_row_number(row, "rate")).point,
        }
        for row in rows
    )
    runs = read_row_count(rows[0], "runs")
    summary = ", ".join(f"{each['stage']} {each['text']}" for each in chart_rows)
    return ReportChart(
        drawing="collapse",
        of=f"{kind}, {runs} run{'' if runs == 1 else 's'}",
        says=f"{kind}: {summary}.",
        rows=chart_rows,
    )


def _group_by_kind(rows: Sequence[ReportRow]) -> Iterable[tuple[str, list[ReportRow]]]:
    groups: dict[str, list[ReportRow]] = {}
    for row in rows:
        groups.setdefault(_find_comparison_kind(row), []).append(row)
    return groups.items()


def _build_causes_section(found: LeaderboardRows) -> ReportSection:
    title = "What stages failed of"
    if not found.attribution:
        return ReportSection(
            name="causes", title=title, nothing="Every stage of every run was passed."
        )
    return ReportSection(
        name="causes",
        title=title,
        lead=(
            "The first cause that there is evidence for, in this order: infrastructure, context, "
            "provider, budget, tooling, planning, reasoning. A run counts once for each cause "
            "that any of its stages has. Of imported runs only the end is known.",
        ),
        charts=tuple(
            _make_causes_chart(kind, rows) for kind, rows in _group_by_kind(found.attribution)
        ),
        tables=(
            ReportTable(
                caption="Causes of stages that were not passed",
                columns=("cause", "runs of", "runs", "share of runs", "stages"),
                rows=tuple(
                    (
                        _describe_cause(row)[1],
                        _find_comparison_kind(row),
                        make_count_figure(read_row_count(row, "runs")),
                        ReportFigure(
                            value=read_row_number(row, "share"),
                            lo=read_row_number(row, "lo"),
                            hi=read_row_number(row, "hi"),
                        ),
                        make_count_figure(read_row_count(row, "cells")),
                    )
                    for row in found.attribution
                ),
            ),
        ),
        notes=('`stumble sql "select * from stages"` has the evidence: failure_evidence.',),
    )


def _describe_cause(row: ReportRow) -> tuple[str, str]:
    cause = row["cause"]
    return CAUSE_LABELS[str(cause) if cause is not None else None]


def _make_causes_chart(kind: str, rows: Sequence[ReportRow]) -> ReportChart:
    chart_rows = tuple(
        {
            "cause": _describe_cause(row)[1].partition(":")[0],
            "ink": _describe_cause(row)[0],
            "share": read_row_number(row, "share"),
            "text": f"{read_row_count(row, 'runs')} of {read_row_count(row, 'of_runs')} runs",
        }
        for row in rows
    )
    summary = ", ".join(f"{each['cause']} {each['text']}" for each in chart_rows)
    return ReportChart(drawing="causes", of=kind, says=f"{kind}: {summary}.", rows=chart_rows)


def _build_details_section(found: LeaderboardRows) -> ReportSection:
    return ReportSection(
        name="details",
        title="All figures",
        tables=(
            _make_wide_table(
                found, "Stage scores, and what other published rules make of them", SCORE_COLUMNS
            ),
            _make_wide_table(found, "What a run took, as a mean over runs", EFFORT_COLUMNS),
        ),
    )


def _make_wide_table(
    found: LeaderboardRows, caption: str, columns: Mapping[str, tuple[str, FigureUnit]]
) -> ReportTable:
    """Build a table of figures without intervals, for agents with pipeline runs."""
    return ReportTable(
        caption=caption,
        columns=("agent", "runs of", *columns),
        rows=tuple(
            (
                f"{place}. {_format_agent_model(row)}",
                _find_comparison_kind(row),
                *(_make_bare_figure(row, name, unit) for name, unit in columns.values()),
            )
            for place, row in _iter_places(found.rows)
            if read_row_count(row, "runs")
        ),
        folded=False,
    )


def _make_bare_figure(row: ReportRow, name: str, unit: FigureUnit) -> ReportFigure:
    return ReportFigure(value=read_row_number(row, name), unit=unit, bare=True, terse=True)
