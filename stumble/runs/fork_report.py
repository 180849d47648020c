"""Report of a fork, as one JSON object and as lines of text."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import replace

from msgspec import Struct

from faults.judging.counterfactual import CounterfactualResult, confirm_by_forks
from faults.judging.judge import ENDINGS_FAILED, judge_run, to_run_evidence
from faults.judging.taint.sinks import FINAL
from stumble.errors import ExitCode
from stumble.runs.decision_log import log_verdicts
from stumble.runs.fork import ForkPoint, ForkResult
from stumble.runs.savings import SavedCost, compute_savings, sum_savings
from stumble.runs.types import RunResult
from stumble.verdicts.excess_failures import ExcessFailures, compare_ends, is_right_ending
from stumble.verdicts.exclusions import Exclusion, explain_exclusion, find_exclusion, suggest_remedy
from stumble.verdicts.outcome_meanings import describe_outcome
from stumble.verdicts.twin_differences import find_differing_twin_ends
from traces.model import JUDGE_VERSION, Outcome, OutcomeClass, RunEnding
from traces.tape.reader import read_tape

WORST_FIRST: tuple[OutcomeClass, ...] = (
    "crashed",
    "noticed_wrong",
    "honest_fail",
    "silent_wrong",
    "recovered",
    "masked",
    "unreached",
)
"""Of several faults in one run: the class that tells what came of all of them."""


CARRIED_OUT = "the call was carried out, and only its answer was lost; --ledger counts what it did"
ANSWER_SOURCES = ("recorded", "live", "simulated", "fault", "refused")
"""Who answered a request."""


class JudgedForkRun(Struct, frozen=True, kw_only=True):
    """A finished faulted run, and the verdict on its injected faults."""

    played: RunResult
    verdict: Outcome | None
    """On all of its faults together; None if nothing was injected."""
    faults: tuple[str, ...] = ()
    """The operators of the injected faults, in their order."""
    saved: SavedCost
    answered: Mapping[str, int]
    """How many requests, by who answered."""

    @property
    def excluded(self) -> Exclusion | None:
        """Why no rate counts it; None if they do, as what came of one fault or of a set."""
        return find_exclusion(self.verdict, self.played.ending.ended)

    @property
    def passed(self) -> bool | None:
        """Whether the end is right; a run that crashed or looped ended wrong."""
        if self.played.ending.ended in ENDINGS_FAILED:
            return False
        return self.verdict.passed if self.verdict else None

    @property
    def outcome(self) -> OutcomeClass | None:
        """The class; None if it is unknown, or if the agent does no better without the fault."""
        if self.verdict is None or self.excluded == "baseline_failed":
            return None
        return self.verdict.outcome

    @property
    def open_reason(self) -> tuple[str, str] | None:
        """Why no rate counts it, and what to do; None if one does."""
        if self.verdict is None or (excluded := self.excluded) is None:
            return None
        why = explain_exclusion(excluded, self.verdict, self.played.ending.detail)
        return why, suggest_remedy(excluded, self.verdict)

    def to_lines(self) -> Iterator[str]:
        """Yield the only faulted run as lines of text."""
        if self.verdict is None:
            why = next(iter(self.played.no_site), "the call was not reached")
            yield f"nothing fired ({why}), so nothing can be said about recovery"
            return
        together = f" of {' and '.join(self.faults)} together" if len(self.faults) > 1 else ""
        told = describe_outcome(self.verdict)
        if self.outcome is None and self.open_reason is not None:
            told = self.open_reason[0]
        yield f"outcome{together}: {self.outcome or 'unknown'} ({told})"
        if self.open_reason is not None:
            why, remedy = self.open_reason
            yield f"  no class: {self.excluded}, {why}"
            yield f"  what to do: {remedy}"
        elif together:
            yield "  in no rate of a single fault; see `stumble sql fault_sets`"
        yield from (f"  {line}" for line in self.verdict.evidence)
        yield f"  end state: {_format_tristate(self.verdict.passed, 'right', 'wrong')}"
        if "lost_ack" in self.faults and self.verdict.double_action is None:
            yield f"  {CARRIED_OUT}"

    def to_line(self) -> str:
        """Return one of several runs as a line of text."""
        if self.verdict is None:
            return "nothing fired"
        state = _format_tristate(self.verdict.passed, "right", "wrong")
        evidence = "".join(f"; {' '.join(line.split())}" for line in self.verdict.evidence[:1])
        why = f" ({self.excluded})" if self.excluded else ""
        return f"{self.outcome or 'unknown'}{why}, end state {state}{evidence}"


def fork_run_to_dict(judged: JudgedForkRun | None) -> dict[str, object]:
    """Return a faulted run as plain data; what is not known, as of an unfinished run, is None."""
    played = judged.played if judged else None
    verdict = judged.verdict if judged else None
    verdict = verdict or Outcome(injection_id="", judge_version=JUDGE_VERSION)
    saved, faults = (judged.saved, judged.faults) if judged else (SavedCost(), ())
    return {
        "run": played.id if played else None,
        "tape": str(played.path) if played else None,
        "agent_exit": played.exit.code if played else None,
        "fired": played.fired if played else 0,
        "no_site": list(played.no_site) if played else [],
        "missed": list(played.missed) if played else [],
        "outcome": judged.outcome if judged else None,
        "counted": judged is not None and judged.excluded is None,
        "excluded": judged.excluded if judged else None,
        "several_faults": list(faults) if len(faults) > 1 else [],
        "consumed": verdict.consumed,
        "unreached_reason": verdict.unreached_reason,
        "noticed": verdict.noticed,
        "passed": verdict.passed,
        "obeyed": verdict.obeyed,
        "claim": verdict.claim,
        "claims_success": verdict.claims_success,
        "false_failure": verdict.false_failure,
        "baseline_valid": verdict.baseline_valid,
        "evidence": list(verdict.evidence),
        "answered": dict(judged.answered) if judged else {},
        "cascades": played.cascades if played else None,
        "drifted": played.drifted if played else None,
        "substituted": played.substituted if played else 0,
        "renamed": dict(played.renamed) if played else {},
        "remade": played.remade if played else 0,
        "saved_model_calls": saved.calls,
        "saved_tokens": saved.tokens,
        "saved_usd": saved.usd,
    }


class ForkReport(Struct, frozen=True, kw_only=True):
    """Verdicts of a fork."""

    fork_point: ForkPoint
    forked: ForkResult
    judged: tuple[JudgedForkRun, ...]
    unlike_twins: str | None = None
    """How twins differ in their end that did the same; None if none do."""

    @property
    def code(self) -> ExitCode:
        """The command's exit code, if no signal ended it."""
        if any(run.diverged for run in self.forked.runs):
            return ExitCode.DIVERGED
        fired = [each for each in self.judged if each.verdict is not None]
        if not fired:
            return ExitCode.NOTHING_FIRED
        return ExitCode.NOT_ENOUGH if all(each.excluded for each in fired) else ExitCode.OK

    @property
    def excess(self) -> ExcessFailures | None:
        """Wrong ends beside those of the twins; None if the ends of either are not known."""
        faulted = [each.passed for each in self.judged if each.verdict is not None]
        return compare_ends(
            faulted, (is_right_ending(t.ending) for t in self.forked.find_finished("clean"))
        )

    @property
    def saved(self) -> SavedCost:
        """Cost of the model calls answered from the tape."""
        told = self.fork_point.derived_steps
        return sum_savings(compute_savings(told, run.saved) for run in self.forked.finished)

    def to_dict(self) -> dict[str, object]:
        """The fork as plain data; what there is one of stands at the top as well."""
        wanted = [each.condition for each in self.forked.wanted]
        only = fork_run_to_dict(next(iter(self.judged), None)) if wanted.count("fault") == 1 else {}
        outcomes = Counter(each.outcome or "unknown" for each in self.judged if each.verdict)
        return {
            "recording": self.fork_point.recording.trajectory.id,
            "strike": self.fork_point.describe(),
            **only,
            "diverged": [why for each in self.forked.runs for why in each.diverged],
            "outcomes": dict(outcomes),
            "unlike_twins": self.unlike_twins,
            "excess": excess.to_dict() if (excess := self.excess) is not None else None,
            "faulted": [fork_run_to_dict(each) for each in self.judged],
            "twins": [
                {
                    "run": twin.id,
                    "passed": twin.ending.passed,
                    "ended": twin.ending.ended,
                    "cascades": twin.cascades,
                    "drifted": twin.drifted,
                    "substituted": twin.substituted,
                    "renamed": dict(twin.renamed),
                    "remade": twin.remade,
                }
                for twin in self.forked.find_finished("clean")
            ],
            "saved": self.saved.to_dict(),
            "wanted": len(wanted),
            "finished": len(self.forked.finished),
        }

    def to_lines(self) -> Iterator[str]:
        """Yield the fork as lines of text."""
        runs, twins = self.forked.finished, self.forked.find_finished("clean")
        if len(self.judged) > 1:
            yield from self._format_outcomes()
        elif self.judged:
            yield from self.judged[0].to_lines()
        if runs:
            yield f"  clean twins: {_format_twin_ends([twin.ending for twin in twins])}"
            if (excess := self.excess) is not None:
                yield f"  {excess.to_line()}"
            if self.unlike_twins is not None:
                yield f"  warning: {self.unlike_twins}"
            yield from self._format_answer_sources()
            yield f"  {self.saved.to_line(len(runs))}"
        yield from [f"diverged: {why}" for run in self.forked.runs for why in run.diverged][:2]
        missed = [why for run in self.forked.runs for why in run.missed]
        yield from (f"not on the tape, so unknown from here on: {why}" for why in missed[:1])
        if len(runs) < len(self.forked.wanted):
            yield f"{len(runs)} of {len(self.forked.wanted)} runs were finished and are kept"

    def _format_outcomes(self) -> Iterator[str]:
        counted = Counter(each.outcome or "unknown" for each in self.judged if each.verdict)
        said = ", ".join(f"{n} {outcome}" for outcome, n in counted.most_common())
        yield f"outcomes of {len(self.judged)} faulted runs: {said or 'nothing fired'}"
        for number, each in enumerate(self.judged, 1):
            yield f"  {number}: {each.to_line()}"
        reasons = Counter(each.open_reason for each in self.judged if each.open_reason)
        for (why, remedy), count in reasons.most_common():
            yield f"  no class in {count} of {len(self.judged)}: {why}"
            yield f"  what to do: {remedy}"

    def _format_answer_sources(self) -> Iterator[str]:
        """Yield counts of answers by source, of cascades and of pinned results."""
        by = sum((Counter(each.answered) for each in self.judged), Counter[str]())
        if by:
            yield "  answered: " + ", ".join(
                f"{by[label]} {label}" for label in ANSWER_SOURCES if by[label]
            )
        cascades = sum(run.cascades for run in self.forked.finished)
        if cascades:
            yield f"  {_format_count(cascades, 'lane')} felt the fork and went live (cascade)"
        changed = sum(run.substituted for run in self.forked.finished)
        if changed:
            yield f"  {_format_count(changed, 'live value')} before the fork shown as recorded"
        renamed = sum(len(run.renamed) for run in self.forked.finished)
        if renamed:
            yield f"  {_format_count(renamed, 'id')} of the live world renamed in later requests"
        remade = sum(run.remade for run in self.forked.runs)
        if remade:
            yield f"  {_format_count(remade, 'run')} left the recording before the fork: made again"
        drifted = [run.drifted for run in self.forked.finished if run.drifted is not None]
        if drifted:
            yield (
                f"  {_format_count(sum(drifted), 'result')} of local tools drifted and were pinned"
            )


def judge_fork(found: ForkPoint, forked: ForkResult) -> ForkReport:
    """Judge all faulted runs against the clean twins."""
    twins = tuple(to_run_evidence(read_tape(twin.path)) for twin in forked.find_finished("clean"))
    ran = [
        (played, to_run_evidence(read_tape(played.path)))
        for played in forked.find_finished("fault")
    ]
    judged = []
    for played, faulted in ran:
        found_faults = judge_run(faulted, twins, lambda: [other for _, other in ran])
        verdicts = [each.verdict for each in found_faults]
        log_verdicts(played.id, verdicts)
        answers = faulted.tape.exchanges
        judged.append(
            JudgedForkRun(
                played=played,
                verdict=join_verdicts(verdicts),
                faults=tuple(each.injection.op for each in found_faults),
                saved=compute_savings(found.derived_steps, played.saved),
                answered=Counter(each.answered_by for each in answers),
            )
        )
    return ForkReport(
        fork_point=found,
        forked=forked,
        judged=tuple(judged),
        unlike_twins=find_differing_twin_ends(twins),
    )


def join_verdicts(verdicts: Sequence[Outcome]) -> Outcome | None:
    """The verdict on all faults of one run together; None if there was none.

    Facts are those of the fault whose class tells most, of those that reached the agent; it was
    noticed if any was. Unknown if the class of any that reached it is.
    """
    reached = [each for each in verdicts if each.consumed is not False] or list(verdicts)
    if len(verdicts) < 2:
        return next(iter(verdicts), None)
    unknown = any(each.outcome is None for each in reached)
    lead = min(reached, key=lambda each: WORST_FIRST.index(each.outcome or "unreached"))
    noticed = {each.noticed for each in reached}
    return replace(
        lead,
        outcome=None if unknown else lead.outcome,
        noticed=True if True in noticed else None if None in noticed else lead.noticed,
        evidence=tuple(dict.fromkeys(line for each in verdicts for line in each.evidence)),
    )


def confirm_fork(forked: ForkResult, twins: int) -> CounterfactualResult:
    """What a fork that was to confirm says: the first strikes, and then those of a second value."""
    done = {
        each: to_run_evidence(read_tape(each_run.path)) for each, each_run in forked.played.items()
    }
    struck = {each.rep: ran for each, ran in done.items() if each.condition == "fault"}
    return confirm_by_forks(
        [ran for each, ran in done.items() if each.condition == "clean"],
        [ran for rep, ran in sorted(struck.items()) if rep < twins],
        [ran for rep, ran in sorted(struck.items()) if rep >= twins],
    )


def confirmation_to_lines(settled: CounterfactualResult) -> Iterator[str]:
    """Yield a confirmation as lines of text."""
    words = {True: "yes", False: "no: nothing moved with it", None: f"unknown: {settled.reason}"}
    yield f"depends on the changed value: {words[settled.tainted]}"
    for slot in settled.slots:
        name, nth = slot.where
        again = ", and a second value moves it too" if slot.moved_again else ""
        where = "the final answer" if name == FINAL else f"{name} ({nth})"
        moved = "moves with it" if slot.tainted else "differs anyway"
        yield f"  {where} {moved}{again}"


def _format_twin_ends(endings: Sequence[RunEnding]) -> str:
    """`3 of 3 right`, and what nobody checked is not called wrong."""
    passes = [ending.passed for ending in endings]
    checked = [passed for passed in passes if passed is not None]
    states = Counter(ending.state for ending in endings if ending.state is not None)
    if not checked and states:
        return f"{max(states.values())} of {len(passes)} end in the same state"
    if not checked:
        return f"{len(passes)}, their end state was not checked"
    unchecked = len(passes) - len(checked)
    more = f", {unchecked} not checked" if unchecked else ""
    return f"{checked.count(True)} of {len(checked)} right{more}"


def _format_tristate(value: bool | None, yes: str, no: str) -> str:
    return "unknown" if value is None else yes if value else no


def _format_count(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
