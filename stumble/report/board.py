"""The leaderboard: each agent and model with its pipeline scores, its cost and its resilience."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stumble.report.values import Chart, Figure, Row, Section, Table, Unit, count, number, whole
from stumble.selection import view

if TYPE_CHECKING:
    import duckdb

PAPER = "`stumble import --cohort paper` puts the 15 published runs of RAMP beside yours"
NOTHING = (
    "No run of the pipeline is in this store. `stumble pipeline run --agent COMMAND` makes one; "
    f"{PAPER}."
)
TERMS = (
    ("stages", "T0 environment, T1 lexer, T2 parser, T3 LLVM IR, T4 optimisation, T5 assembly"),
    ("MR", "mean reward: stage scores weighted 1 2 2 3 3 4, times 1.2 until a stage is not full"),
    ("MR (other weights)", "the same with the weights 1 4 4 3 6 2 of RAMP's code and site"),
    ("tier", "the last stage of an unbroken row of 100s; the median where there are several runs"),
    ("pass", "a stage with a score of 60 or more"),
    ("pass score", "share of 9 points: 1.5 for a passed stage, 1 after one that was not full"),
    ("strict", "a stage counts in full or not at all, and nothing after the first that failed"),
    ("AEI", "RAMP's index: tier and MR against the cohort's best, time, cost and tokens saved"),
    ("gated AEI", "the way from an untouched starter to 100, times what is left of fixed budgets"),
    ("recovered", "of the faults that reached the agent: noticed, and the end state is right"),
    ("silently wrong", "of those: delivered wrong as right, without a sign of notice"),
    ("S(20), S(50)", "the implied chance to get through so many steps if 2 % of them go wrong"),
    ("RAMP tokens", "prompt and completion, with cached and reasoning tokens counted once more"),
)
LEAD = (
    "Pipeline figures are means over clean runs with 95 % intervals over runs; one run has none. "
    "Recovery and survival are of the same agent and model under injected faults."
)
CAUSES: Mapping[str | None, tuple[str, str]] = {
    "infrastructure": ("unsettled", "infrastructure: not the agent's"),
    "context": ("noticed_wrong", "context: the conversation was too long"),
    "provider": ("absorbed", "provider: the model did not answer"),
    "budget": ("masked", "budget: used up"),
    "tooling": ("crashed", "tooling: calls or programs that fail"),
    "planning": ("honest_fail", "planning: left undone"),
    "reasoning": ("silent_wrong", "reasoning: done, and wrong"),
    None: ("line", "no evidence of a cause"),
}

SCORES: Mapping[str, tuple[str, Unit]] = {
    **{f"T{k}": (f"t{k}", "points") for k in range(6)},
    "pipeline score": ("pl", "points"),
    "pass score": ("pass_score", "points"),
    "MR (other weights)": ("mr_a", "points"),
    "strict": ("e2e_strict", "points"),
}
EFFORT: Mapping[str, tuple[str, Unit]] = {
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """What the store says of the pipeline, as rows of its views."""

    rows: tuple[Row, ...]
    completion: tuple[Row, ...]
    attribution: tuple[Row, ...]
    cohorts: tuple[Row, ...]


def board(connection: "duckdb.DuckDBPyConnection", cohort: str | None) -> Board:
    """The rows, best MR first; RAMP's index against that cohort where one is named."""
    found = view(connection, "leaderboard")
    against = found if cohort is None else [_against(row, cohort) for row in found]
    return Board(
        rows=tuple(sorted(against, key=_rank)),
        completion=tuple(sorted(view(connection, "completion"), key=_stage)),
        attribution=tuple(sorted(view(connection, "attribution"), key=_cause)),
        cohorts=view(connection, "cohorts"),
    )


def _against(row: Row, cohort: str) -> Row:
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


def _rank(row: Row) -> tuple[float, str, str]:
    mr = number(row, "mr")
    return 1.0 if mr is None else -mr, _who(row), _kind(row)


def _stage(row: Row) -> tuple[str, str]:
    return _kind(row), str(row["stage"])


def _cause(row: Row) -> tuple[str, float, str]:
    return _kind(row), -whole(row, "runs"), str(row["cause"])


def _who(row: Row) -> str:
    model, agent = row["model"], row["agent"]
    if model and agent:
        return f"{model} ({agent})"
    return str(model or agent or "not named")


def _kind(row: Row) -> str:
    """`paper`, or `embedded, guided, no-resurrection`: what rows must share to be compared."""
    if row.get("cohort"):
        return str(row["cohort"])
    arm = row.get("arm")
    words = (row.get("workload"), row.get("mode"), arm if arm != "resurrect" else None)
    return ", ".join(str(word) for word in words if word) or "\u2013"


def sections(found: Board) -> tuple[Section, ...]:
    """The leaderboard, cost against score, the collapse along the stages, and what failed."""
    if not found.rows:
        return (Section(name="board", title="Leaderboard", nothing=NOTHING),)
    return (_board(found), _bargains(found), _collapse(found), _causes(found), _details(found))


def standings(found: Board) -> Table:
    """The main figures, each with its interval."""
    return Table(
        caption="Agents and models, best mean reward first",
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
                f"{place}. {_who(row)}",
                _kind(row),
                count(whole(row, "runs")),
                _tier(row),
                _figure(row, "mr", "points"),
                _figure(row, "aei", "points"),
                _figure(row, "gated_aei", "points"),
                _figure(row, "cost_usd", "usd"),
                _figure(row, "recovery_rate", "share", n="judged"),
                _figure(row, "silent_rate", "share", n="judged"),
                _figure(row, "survival_20", "share"),
                _figure(row, "survival_50", "share"),
            )
            for place, row in enumerate(found.rows, 1)
        ),
        folded=False,
    )


def _figure(row: Row, name: str, unit: Unit, *, n: str | None = None) -> Figure:
    """A figure with its own reason; one run has no interval, as the column of runs shows."""
    said = row[f"{name}_reason"]
    value = number(row, name)
    return Figure(
        value=value,
        unit=unit,
        lo=number(row, f"{name}_lo"),
        hi=number(row, f"{name}_hi"),
        n=whole(row, n) if n and value is not None else None,
        reason=str(said) if said else None,
        bare=said == "one_run",
        terse=True,
    )


def _tier(row: Row) -> Figure:
    tier, low, high = (number(row, name) for name in ("tier", "tier_lo", "tier_hi"))
    if tier is None:
        return Figure(value=None, unit="count", reason=str(row["mr_reason"]), terse=True)
    alike = low == high
    return Figure(
        value=tier,
        unit="tokens",
        lo=None if alike else low,
        hi=None if alike else high,
        bare=alike,
    )


def _board(found: Board) -> Section:
    notes = [_against_whom(cohort) for cohort in _named(found)]
    if not found.cohorts:
        notes.append(f"AEI is against a cohort, and there is none: {PAPER}.")
    struck = [row for row in found.rows if row["mr_struck"] is not None]
    notes += [
        f"{_who(row)}, {_kind(row)}: MR {number(row, 'mr_struck') or 0:.1f} in "
        f"{whole(row, 'runs_struck')} run{'' if whole(row, 'runs_struck') == 1 else 's'} "
        "that a fault struck."
        for row in struck
    ]
    return Section(
        name="board",
        title="Leaderboard",
        lead=(LEAD,),
        tables=(standings(found),),
        notes=tuple(notes),
    )


def _named(found: Board) -> Iterable[Row]:
    used = {row["aei_cohort"] for row in found.rows}
    return [cohort for cohort in found.cohorts if cohort["cohort"] in used]


def _against_whom(cohort: Row) -> str:
    most = cohort["most"]
    assert isinstance(most, dict)
    known = (
        ("tier", most["tier"], "{:.0f}"),
        ("MR", most["mr"], "{:.2f}"),
        ("seconds", most["seconds"], "{:,.0f}"),
        ("dollars", most["cost_usd"], "{:,.2f}"),
        ("RAMP tokens", most["tokens"], "{:,.0f}"),
    )
    said = ", ".join(f"{form.format(x)} {name}" for name, x, form in known if x is not None)
    return f"AEI against {cohort['cohort']} ({whole(cohort, 'runs')} runs), whose most is: {said}."


def _bargains(found: Board) -> Section:
    dots = tuple(_dots(found.rows))
    title = "Cost against reward"
    if not dots:
        return Section(name="cost", title=title, nothing="No run has a known cost above 0.")
    missing = len(found.rows) - len(dots)
    return Section(
        name="cost",
        title=title,
        lead=(
            "Dollars per run on a logarithmic scale; a dot's number is its place in the table. "
            "Nobody scores more for less than those that the line goes through.",
        ),
        charts=(
            Chart(
                drawing="bargains",
                of=f"{len(dots)} agents and models",
                says="; ".join(
                    f"{dot.place}. {dot.who}: {dot.score:.1f} for ${dot.cost:,.2f}" for dot in dots
                ),
                rows=tuple(dot.row(dots) for dot in dots),
            ),
        ),
        legend=(
            ("naive", "published"),
            ("faulted", "of this store"),
            ("honest_fail", "nobody does better for less"),
        ),
        notes=(f"{missing} without a known cost are left out.",) if missing else (),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dot:
    """An agent and model on the plane of cost and score."""

    place: int
    who: str
    cost: float
    score: float
    lo: float | None
    hi: float | None
    published: bool

    def row(self, among: "Iterable[_Dot]") -> Row:
        """As it is drawn; `best` where none of the others scores more for no more."""
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


def _dots(rows: Iterable[Row]) -> Iterable[_Dot]:
    for place, row in enumerate(rows, 1):
        cost, score = number(row, "cost_usd"), number(row, "mr")
        if cost and score is not None:
            yield _Dot(
                place=place,
                who=_who(row),
                cost=cost,
                score=score,
                lo=number(row, "mr_lo"),
                hi=number(row, "mr_hi"),
                published=bool(row["cohort"]),
            )


def _collapse(found: Board) -> Section:
    return Section(
        name="collapse",
        title="Collapse along the stages",
        lead=(
            "The share of runs that score 60 or more at each stage, with its 95 % interval, and of "
            "those that did so at every stage up to it. Runs in which the grader failed at a stage "
            "are left out there.",
        ),
        charts=tuple(_way(kind, rows) for kind, rows in _grouped(found.completion)),
        legend=(("observed", "passes this stage"), ("constant", "passes all stages up to it")),
        tables=(
            Table(
                caption="Runs that pass each stage",
                columns=("stage", "runs of", "runs", "pass", "pass, all", "up to here", "full"),
                rows=tuple(
                    (
                        str(row["stage"]),
                        _kind(row),
                        count(whole(row, "runs")),
                        Figure(
                            value=number(row, "rate"),
                            lo=number(row, "lo"),
                            hi=number(row, "hi"),
                            reason=str(row["reason"]) if row["reason"] else None,
                        ),
                        Figure(value=number(row, "rate_all"), bare=True),
                        count(whole(row, "serial")),
                        count(whole(row, "full")),
                    )
                    for row in found.completion
                ),
            ),
        ),
    )


def _way(kind: str, rows: Sequence[Row]) -> Chart:
    drawn = tuple(
        {
            "stage": row["stage"],
            "rate": number(row, "rate"),
            "lo": number(row, "lo"),
            "hi": number(row, "hi"),
            "serial": number(row, "serial_rate"),
            "text": Figure(value=number(row, "rate")).point,
        }
        for row in rows
    )
    runs = whole(rows[0], "runs")
    said = ", ".join(f"{each['stage']} {each['text']}" for each in drawn)
    return Chart(
        drawing="collapse",
        of=f"{kind}, {runs} run{'' if runs == 1 else 's'}",
        says=f"{kind}: {said}.",
        rows=drawn,
    )


def _grouped(rows: Sequence[Row]) -> Iterable[tuple[str, list[Row]]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(_kind(row), []).append(row)
    return groups.items()


def _causes(found: Board) -> Section:
    title = "What stages failed of"
    if not found.attribution:
        return Section(name="causes", title=title, nothing="Every stage of every run was passed.")
    return Section(
        name="causes",
        title=title,
        lead=(
            "The first cause that there is evidence for, in this order: infrastructure, context, "
            "provider, budget, tooling, planning, reasoning. A run counts once for each cause "
            "that any of its stages has. Of imported runs only the end is known.",
        ),
        charts=tuple(_blame(kind, rows) for kind, rows in _grouped(found.attribution)),
        tables=(
            Table(
                caption="Causes of stages that were not passed",
                columns=("cause", "runs of", "runs", "share of runs", "stages"),
                rows=tuple(
                    (
                        _words(row)[1],
                        _kind(row),
                        count(whole(row, "runs")),
                        Figure(
                            value=number(row, "share"),
                            lo=number(row, "lo"),
                            hi=number(row, "hi"),
                        ),
                        count(whole(row, "cells")),
                    )
                    for row in found.attribution
                ),
            ),
        ),
        notes=('`stumble sql "select * from stages"` has the evidence: failure_evidence.',),
    )


def _words(row: Row) -> tuple[str, str]:
    cause = row["cause"]
    return CAUSES[str(cause) if cause is not None else None]


def _blame(kind: str, rows: Sequence[Row]) -> Chart:
    drawn = tuple(
        {
            "cause": _words(row)[1].partition(":")[0],
            "ink": _words(row)[0],
            "share": number(row, "share"),
            "text": f"{whole(row, 'runs')} of {whole(row, 'of_runs')} runs",
        }
        for row in rows
    )
    said = ", ".join(f"{each['cause']} {each['text']}" for each in drawn)
    return Chart(drawing="causes", of=kind, says=f"{kind}: {said}.", rows=drawn)


def _details(found: Board) -> Section:
    return Section(
        name="details",
        title="All figures",
        tables=(
            _wide(found, "Stage scores, and what other published rules make of them", SCORES),
            _wide(found, "What a run took, as a mean over runs", EFFORT),
        ),
    )


def _wide(found: Board, caption: str, columns: Mapping[str, tuple[str, Unit]]) -> Table:
    """A figure without an interval for each column, of those who ran a pipeline."""
    return Table(
        caption=caption,
        columns=("agent", "runs of", *columns),
        rows=tuple(
            (
                f"{place}. {_who(row)}",
                _kind(row),
                *(_plain(row, name, unit) for name, unit in columns.values()),
            )
            for place, row in enumerate(found.rows, 1)
            if whole(row, "runs")
        ),
        folded=False,
    )


def _plain(row: Row, name: str, unit: Unit) -> Figure:
    return Figure(value=number(row, name), unit=unit, bare=True, terse=True)
