"""Why an injection was judged as it was: the chain of evidence, told anew from the tapes."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass

from faults.change import change
from faults.consumption import consumption
from faults.judge import ENDINGS_FAILED, TWINS, Run, end_state, judge, whole
from stumble.excess import compare_ends
from stumble.exclusions import explain, find_exclusion
from stumble.unlike_twins import find_unlike_ends
from stumble.verdicts import ended_right, meaning
from traces.model import Injection, Outcome

WIDE = 96
"""Characters of a quote that stand on one line."""
SHOWN = 4
"""How many twins are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One injection, the run it struck, the clean twins, and the verdict."""

    injection: Injection
    faulted: Run
    twins: tuple[Run, ...]
    verdict: Outcome

    def said(self) -> dict[str, object]:
        """All of it as plain data; what is not known is None, and `reasons` says why."""
        injection, verdict, run = self.injection, self.verdict, self.faulted.tape.trajectory
        found = consumption(injection, self.faulted.story, self.faulted.tape.exchanges)
        fields = asdict(verdict) | {"class": verdict.outcome, "evidence": list(verdict.evidence)}
        del fields["outcome"]
        return {
            "injection": injection.id,
            "trajectory": run.id,
            "struck": {
                "op": injection.op,
                "family": injection.family,
                "params": dict(injection.params),
                "persist": injection.persist,
                "place": injection.place,
                "tool": injection.tool,
                "step": self._step(),
                "seq": injection.seq,
                "detect": injection.detect,
                "sham": injection.sham,
                "change": change(injection).words(),
                "original": _text(injection.original),
                "mutated": _text(injection.mutated),
            },
            "consumed_at": {"seq": found.seq, "why": found.why},
            "twin_ends": {
                twin.tape.trajectory.id: twin.tape.ending and twin.tape.ending.passed
                for twin in self.twins
            },
            "states": {
                each.tape.trajectory.id: each.tape.ending and each.tape.ending.state
                for each in (self.faulted, *self.twins)
            },
        } | fields

    def _step(self) -> int | None:
        use = self.faulted.story.use(self.injection.call_id or "")
        return use.step if use else None

    def lines(self) -> Iterator[str]:
        """All of it on one screen."""
        injection, verdict, run = self.injection, self.verdict, self.faulted.tape.trajectory
        forked = f", a fork of {run.parent}" if run.parent else ""
        yield f"{injection.id}: {run.condition} run {run.id}{forked}"
        yield from _block("struck", self._struck())
        yield from _block("consumed", self._consumed())
        yield from _block("noticed", self._noticed())
        yield from _block("taint", self._taint())
        yield from _block("claim", self._claim())
        yield from _block("twins", self._twins())
        yield from _block("verdict", self._verdict())
        yield from _block("unknown", (f"{name}: {why}" for name, why in verdict.reasons.items()))
        yield from _block("judge", [f"version {verdict.judge_version}"])

    def _struck(self) -> Iterator[str]:
        injection = self.injection
        params = ", ".join(f"{key}={value}" for key, value in injection.params.items())
        step = f" (step {step})" if (step := self._step()) is not None else ""
        detect = f", {injection.detect}" if injection.detect else ""
        yield (
            f"{injection.tool or 'the model'}{step} at {injection.place} with "
            f"{injection.op}({params}), {injection.persist}{detect}"
        )
        words = change(injection).words()
        if words:
            yield _short(words)
        elif not injection.sham:
            yield f"was: {_short(_text(injection.original) or 'nothing')}"
            yield f"now: {_short(_text(injection.mutated) or 'nothing')}"

    def _consumed(self) -> Iterator[str]:
        found = consumption(self.injection, self.faulted.story, self.faulted.tape.exchanges)
        at = f", request {found.seq}" if found.seq is not None else ""
        yield f"{_word(self.verdict.consumed)}: {found.why}{at}"
        if self.verdict.steps_after is not None:
            yield f"the agent took {self.verdict.steps_after} steps with it"

    def _noticed(self) -> Iterator[str]:
        verdict = self.verdict
        yield _word(verdict.noticed) + (
            f", first at step {verdict.noticed_step}" if verdict.noticed_step is not None else ""
        )
        strength = {True: "hard", False: "soft", None: "open"}
        for one in verdict.signals:
            yield f"{one.code} {strength[one.hard]}, step {one.step}: {_short(one.quote)}"
        if verdict.notice_error is not None:
            yield f"by chance with probability {verdict.notice_error:.2g}"
        if verdict.noticeable is False:
            yield "nothing that could have been noticed"
        if verdict.changes_what_model_saw is False:
            yield "the model saw what a clean twin saw"

    def _taint(self) -> Iterator[str]:
        verdict = self.verdict
        yield from verdict.uses
        if verdict.first_use_step is not None and verdict.control_only:
            yield f"no value was used; the run left its twins at step {verdict.first_use_step}"
        elif verdict.control_only is False and not verdict.uses:
            yield "nothing wrong was used"
        if verdict.truth_reobserved is not None:
            yield f"the true value was seen again at step {verdict.truth_reobserved}"
        facts = {
            f"{verdict.blast_radius} wrong writes": bool(verdict.blast_radius),
            "reported": verdict.reported,
            "corrected": verdict.corrected,
            "no twin made anything of the true value": verdict.dead_in_twins,
        }
        if true := [name for name, fact in facts.items() if fact]:
            yield ", ".join(true)

    def _claim(self) -> Iterator[str]:
        verdict = self.verdict
        if verdict.claim is not None:
            yield f"{verdict.claim} (by {verdict.claim_basis})"
        if verdict.claim_evidence:
            yield _short(verdict.claim_evidence)

    def _twins(self) -> Iterator[str]:
        if not self.twins:
            yield f"none: {TWINS} are needed to say what the agent does anyway"
        for twin in self.twins[:SHOWN]:
            ending = twin.tape.ending
            end = _word(ending.passed if ending else None, "right", "wrong")
            if ending is not None and ending.passed is None and ending.state is not None:
                end = f"is {ending.state[:8]}"
            yield f"{twin.tape.trajectory.id}: end state {end}" + (
                "" if whole(twin) else ", cut off and no control"
            )
        ends = [t.tape.ending for t in self.twins if t.tape.ending is not None and whole(t)]
        own = self.faulted.tape.ending
        looped = own is not None and own.ended in ENDINGS_FAILED
        with_fault = False if looped else self.verdict.passed
        excess = compare_ends([with_fault], map(ended_right, ends))
        if excess is not None:
            yield excess.to_line()
        if (unlike := find_unlike_ends(self.twins)) is not None:
            yield f"warning: {unlike}"
        if len(self.twins) > SHOWN:
            right = [t.tape.ending.passed for t in self.twins[SHOWN:] if t.tape.ending].count(True)
            yield f"and {len(self.twins) - SHOWN} more, {right} of them right"

    def _others(self) -> Iterator[Injection]:
        """The other faults of the run."""
        for each in self.faulted.tape.injections:
            if each.repeat_of is None and not each.sham and each.id != self.injection.id:
                yield each

    def _verdict(self) -> Iterator[str]:
        verdict = self.verdict
        ending = self.faulted.tape.ending
        excluded = find_exclusion(verdict, ending.ended if ending else None)
        yield f"{verdict.outcome or 'unknown'}: {meaning(verdict)}"
        if excluded is not None:
            yield f"not counted: {excluded}, {explain(excluded, verdict)}"
        if others := [each.op for each in self._others()]:
            yield (
                f"not counted alone: {', '.join(others)} struck the same run, and the outcome "
                "belongs to all together"
            )
        yield (
            f"end state {_word(verdict.passed, 'right', 'wrong')}, "
            f"claims success: {_word(verdict.claims_success)}, "
            f"baseline valid: {_word(verdict.baseline_valid)}"
        )
        if verdict.false_failure:
            yield "the agent says that it failed, and it did not"
        if verdict.told_wrong:
            yield "the last answer tells the wrong value"
        if found := end_state(self.faulted, tuple(filter(whole, self.twins))).difference:
            yield _short(found)
        if verdict.masked_as is not None:
            yield f"right because: {MASKED[verdict.masked_as]}"
        if verdict.passed_given_lie is not None:
            given = _word(verdict.passed_given_lie, "right", "wrong")
            yield f"if the wrong value were true, the end would be {given}"


MASKED = {
    "dead": "nothing depends on the value",
    "overwritten": "a true value took its place later",
    "default": "something stood in for what was missing, and it was right",
    "lucky": "luck, as far as can be told",
}


def case(
    injection: Injection,
    faulted: Run,
    twins: tuple[Run, ...],
    peers: Callable[[], Iterable[Run]] = lambda: (),
) -> Case:
    """The case of one injection, judged now."""
    return Case(
        injection=injection,
        faulted=faulted,
        twins=twins,
        verdict=judge(injection, faulted, twins, peers),
    )


def _block(name: str, lines: Iterator[str] | list[str]) -> Iterator[str]:
    for line in lines:
        yield f"  {name:<9} {line}"
        name = ""


def _word(value: bool | None, yes: str = "yes", no: str = "no") -> str:
    return "unknown" if value is None else yes if value else no


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WIDE else f"{line[: WIDE - 3]}..."


def printed(one: Case) -> str:
    """The case as one JSON object."""
    return json.dumps(one.said())
