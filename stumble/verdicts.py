"""What a fork found, as one JSON object and as a few lines for a person."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from faults.confirm import Confirmation, confirm
from faults.judge import ENDINGS_FAILED, judge, run
from faults.sinks import FINAL
from stumble.excess import ExcessFailures, compare_ends
from stumble.exclusions import Exclusion, explain, find_exclusion
from stumble.exits import Exits
from stumble.forks import Branch, Forked
from stumble.runs import Played
from stumble.savings import Saved, saved, total
from stumble.unlike_twins import find_unlike_ends
from traces.model import Class, Ending, Outcome
from traces.tape import read

MEANING: Mapping[Class | None, str] = {
    "recovered": "noticed, and the end state is right",
    "masked": "not noticed, yet the end state is right",
    "honest_fail": "the end state is wrong, and the agent says so",
    "noticed_wrong": "noticed, yet delivered wrong as done",
    "silent_wrong": "not noticed, and delivered wrong as done",
    "crashed": "no final answer",
    "unreached": "the model never saw it",
    None: "what decides it is not known",
}
WORST_FIRST: tuple[Class, ...] = (
    "crashed",
    "noticed_wrong",
    "honest_fail",
    "silent_wrong",
    "recovered",
    "masked",
    "unreached",
)
"""Of several faults in one run: the class that tells what came of all of them."""


def meaning(verdict: Outcome) -> str:
    """What a class means; of none, why there is none."""
    if verdict.false_failure:
        return "the end state is right, yet the agent says that it failed"
    why = verdict.reasons.get("class") if verdict.outcome is None else None
    return why or MEANING[verdict.outcome]


LABELS = ("recorded", "live", "simulated", "fault", "refused")
"""Who answered a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A faulted run that is over, and what came of the faults that struck it."""

    played: Played
    verdict: Outcome | None
    """Of all of its faults together; None if nothing was struck."""
    faults: tuple[str, ...] = ()
    """The operators that struck, in their order."""
    saved: Saved
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
    def outcome(self) -> Class | None:
        """The class; None if it is unknown, or if the agent does no better without the fault."""
        if self.verdict is None or self.excluded == "baseline_failed":
            return None
        return self.verdict.outcome

    def said(self) -> dict[str, object]:
        """The run as plain data; what is not known is None."""
        played, verdict = self.played, self.verdict
        return {
            "run": played.id,
            "tape": str(played.path),
            "agent_exit": played.exit.code,
            "fired": played.fired,
            "no_site": list(played.no_site),
            "missed": list(played.missed),
            "outcome": self.outcome,
            "counted": self.excluded is None,
            "excluded": self.excluded,
            "several_faults": list(self.faults) if len(self.faults) > 1 else [],
            "consumed": verdict.consumed if verdict else None,
            "unreached_reason": verdict.unreached_reason if verdict else None,
            "noticed": verdict.noticed if verdict else None,
            "passed": verdict.passed if verdict else None,
            "claim": verdict.claim if verdict else None,
            "claims_success": verdict.claims_success if verdict else None,
            "false_failure": verdict.false_failure if verdict else None,
            "baseline_valid": verdict.baseline_valid if verdict else None,
            "evidence": list(verdict.evidence) if verdict else [],
            "answered": dict(self.answered),
            "cascades": played.cascades,
            "drifted": played.drifted,
            "saved_model_calls": self.saved.calls,
            "saved_tokens": self.saved.tokens,
            "saved_usd": self.saved.usd,
        }

    def lines(self) -> Iterator[str]:
        """The only faulted run, in words."""
        if self.verdict is None:
            why = next(iter(self.played.no_site), "the call was not reached")
            yield f"nothing fired ({why}), so nothing can be said about recovery"
            return
        together = f" of {' and '.join(self.faults)} together" if len(self.faults) > 1 else ""
        excluded = self.excluded
        told = meaning(self.verdict)
        if self.outcome is None and excluded is not None:
            told = explain(excluded, self.verdict)
        yield f"outcome{together}: {self.outcome or 'unknown'} ({told})"
        if excluded is not None:
            yield f"  not counted: {excluded}, {explain(excluded, self.verdict)}"
        elif together:
            yield "  in no rate of a single fault; see `stumble sql fault_sets`"
        yield from (f"  {line}" for line in self.verdict.evidence)
        yield f"  end state: {_word(self.verdict.passed, 'right', 'wrong')}"

    def line(self) -> str:
        """One of several, in words."""
        if self.verdict is None:
            return "nothing fired"
        state = _word(self.verdict.passed, "right", "wrong")
        evidence = "".join(f"; {' '.join(line.split())}" for line in self.verdict.evidence[:1])
        why = f", not counted ({self.excluded})" if self.excluded else ""
        return f"{self.outcome or 'unknown'}{why}, end state {state}{evidence}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All that a fork found."""

    found: Branch
    forked: Forked
    judged: tuple[Judged, ...]
    unlike_twins: str | None = None
    """How twins differ in their end that did the same; None if none do."""

    @property
    def code(self) -> Exits:
        """What the command ends with, where nobody ended it."""
        if any(run.diverged for run in self.forked.runs):
            return Exits.DIVERGED
        fired = [each for each in self.judged if each.verdict is not None]
        if not fired:
            return Exits.NOTHING_FIRED
        return Exits.NOT_ENOUGH if any(each.excluded for each in fired) else Exits.OK

    @property
    def excess(self) -> ExcessFailures | None:
        """Wrong ends beside those of the twins; None if the ends of either are not known."""
        faulted = [each.passed for each in self.judged if each.verdict is not None]
        return compare_ends(faulted, (ended_right(t.ending) for t in self.forked.of("clean")))

    @property
    def saved(self) -> Saved:
        """What no run had to pay for."""
        told = self.found.told
        return total(saved(told, run.saved) for run in self.forked.finished)

    def said(self) -> dict[str, object]:
        """The fork as plain data; what there is one of stands at the top as well."""
        wanted = [each.condition for each in self.forked.wanted]
        nothing = _NOTHING if wanted.count("fault") == 1 else {}
        alone = self.judged[0].said() if wanted.count("fault") == 1 and self.judged else nothing
        outcomes = Counter(each.outcome or "unknown" for each in self.judged if each.verdict)
        return {
            "recording": self.found.recording.trajectory.id,
            "strike": self.found.describe(),
            **alone,
            "diverged": [why for each in self.forked.runs for why in each.diverged],
            "outcomes": dict(outcomes),
            "unlike_twins": self.unlike_twins,
            "excess": excess.to_dict() if (excess := self.excess) is not None else None,
            "faulted": [each.said() for each in self.judged],
            "twins": [
                {
                    "run": twin.id,
                    "passed": twin.ending.passed,
                    "ended": twin.ending.ended,
                    "cascades": twin.cascades,
                    "drifted": twin.drifted,
                }
                for twin in self.forked.of("clean")
            ],
            "saved": self.saved.said(),
            "wanted": len(wanted),
            "finished": len(self.forked.finished),
        }

    def report(self) -> Iterator[str]:
        """The fork in words."""
        runs, twins = self.forked.finished, self.forked.of("clean")
        if len(self.judged) > 1:
            yield from self._outcomes()
        elif self.judged:
            yield from self.judged[0].lines()
        if runs:
            yield f"  clean twins: {_twins([twin.ending for twin in twins])}"
            if (excess := self.excess) is not None:
                yield f"  {excess.to_line()}"
            if self.unlike_twins is not None:
                yield f"  warning: {self.unlike_twins}"
            yield from self._shown()
            yield f"  {self.saved.words(len(runs))}"
        yield from [f"diverged: {why}" for run in self.forked.runs for why in run.diverged][:2]
        missed = [why for run in self.forked.runs for why in run.missed]
        yield from (f"not on the tape, so unknown from here on: {why}" for why in missed[:1])
        if len(runs) < len(self.forked.wanted):
            yield f"{len(runs)} of {len(self.forked.wanted)} runs were finished and are kept"

    def _outcomes(self) -> Iterator[str]:
        counted = Counter(each.outcome or "unknown" for each in self.judged if each.verdict)
        said = ", ".join(f"{n} {outcome}" for outcome, n in counted.most_common())
        yield f"outcomes of {len(self.judged)} faulted runs: {said or 'nothing fired'}"
        for number, each in enumerate(self.judged, 1):
            yield f"  {number}: {each.line()}"

    def _shown(self) -> Iterator[str]:
        """Who answered, and what of the prefix was not as recorded."""
        by = sum((Counter(each.answered) for each in self.judged), Counter[str]())
        if by:
            yield "  answered: " + ", ".join(
                f"{by[label]} {label}" for label in LABELS if by[label]
            )
        cascades = sum(run.cascades for run in self.forked.finished)
        if cascades:
            yield f"  {_some(cascades, 'lane')} felt the fork and went live (cascade)"
        drifted = [run.drifted for run in self.forked.finished if run.drifted is not None]
        if drifted:
            yield f"  {_some(sum(drifted), 'result')} of local tools drifted and were pinned"


_NOTHING: Mapping[str, object] = {
    "run": None,
    "tape": None,
    "agent_exit": None,
    "fired": 0,
    "no_site": [],
    "missed": [],
    "outcome": None,
    "counted": False,
    "excluded": None,
    "several_faults": [],
    "consumed": None,
    "unreached_reason": None,
    "noticed": None,
    "passed": None,
    "claim": None,
    "claims_success": None,
    "false_failure": None,
    "baseline_valid": None,
    "evidence": [],
    "answered": {},
    "cascades": None,
    "drifted": None,
    "saved_model_calls": 0,
    "saved_tokens": 0,
    "saved_usd": 0.0,
}
"""What is said of the only faulted run where it is not over."""


def findings(found: Branch, forked: Forked) -> Findings:
    """The verdicts on all faulted runs against the clean twins."""
    twins = tuple(run(read(twin.path)) for twin in forked.of("clean"))
    ran = [(played, run(read(played.path))) for played in forked.of("fault")]
    judged = []
    for played, faulted in ran:
        struck = [each for each in faulted.tape.injections if each.repeat_of is None]
        verdicts = [
            judge(each, faulted, twins, lambda: [other for _, other in ran]) for each in struck
        ]
        answers = faulted.tape.exchanges
        judged.append(
            Judged(
                played=played,
                verdict=join_verdicts(verdicts),
                faults=tuple(each.op for each in struck),
                saved=saved(found.told, played.saved),
                answered=Counter(each.answered_by for each in answers),
            )
        )
    return Findings(
        found=found,
        forked=forked,
        judged=tuple(judged),
        unlike_twins=find_unlike_ends(twins),
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


def confirmed(forked: Forked, twins: int) -> Confirmation:
    """What a fork that was to confirm says: the first strikes, and then those of a second value."""
    done = {each: run(read(each_run.path)) for each, each_run in forked.played.items()}
    struck = {each.rep: ran for each, ran in done.items() if each.condition == "fault"}
    return confirm(
        [ran for each, ran in done.items() if each.condition == "clean"],
        [ran for rep, ran in sorted(struck.items()) if rep < twins],
        [ran for rep, ran in sorted(struck.items()) if rep >= twins],
    )


def told(settled: Confirmation) -> Iterator[str]:
    """A confirmation in words."""
    words = {True: "yes", False: "no: nothing moved with it", None: f"unknown: {settled.reason}"}
    yield f"depends on the struck value: {words[settled.tainted]}"
    for slot in settled.slots:
        name, nth = slot.where
        again = ", and a second value moves it too" if slot.moved_again else ""
        where = "the final answer" if name == FINAL else f"{name} ({nth})"
        moved = "moves with it" if slot.tainted else "differs anyway"
        yield f"  {where} {moved}{again}"


def _twins(endings: Sequence[Ending]) -> str:
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


def ended_right(ending: Ending) -> bool | None:
    """What is known of an end; one that came by a crash or a budget is wrong."""
    return False if ending.ended in ENDINGS_FAILED else ending.passed


def _word(value: bool | None, yes: str, no: str) -> str:
    return "unknown" if value is None else yes if value else no


def _some(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
