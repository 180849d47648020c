"""Explanation of a verdict: the chain of evidence, derived from the tapes."""

import json
from collections.abc import Iterator

from msgspec import Struct, to_builtins

from faults.judging.injected_change import to_injected_change
from faults.judging.judge import (
    ENDINGS_FAILED,
    MIN_CLEAN_TWINS,
    JudgedInjection,
    is_complete_run,
)
from faults.judging.obedience import EVIDENCE
from stumble.control_characters import escape_controls
from stumble.verdicts.excess_failures import compare_ends, is_right_ending
from stumble.verdicts.exclusions import explain_exclusion, find_exclusion, suggest_remedy
from stumble.verdicts.file_changes import RunFiles, compare_files, list_changes
from stumble.verdicts.outcome_meanings import describe_outcome
from stumble.verdicts.twin_differences import find_differing_twin_ends
from traces.conversation.prefix_changes import find_prefix_changes
from traces.model import Injection

QUOTE_WIDTH = 96
"""Most characters of a quote."""
MAX_TWINS_SHOWN = 4
"""Most twins listed."""
MAX_FILES_SHOWN = 6
"""Most changed files listed."""


class VerdictExplanation(Struct, frozen=True, kw_only=True):
    """A judged injection in words."""

    judged: JudgedInjection
    files: tuple[RunFiles, ...] = ()
    """What the run, and its first twin, changed in their workspaces."""

    def to_dict(self) -> dict[str, object]:
        """Return the explanation as plain data; unknown facts are None, explained in `reasons`."""
        judged, injection, verdict = self.judged, self.judged.injection, self.judged.verdict
        tape, consumption = judged.faulted.tape, judged.consumption
        fields: dict[str, object] = to_builtins(verdict) | {"class": verdict.outcome}
        del fields["outcome"]
        return {
            "injection": injection.id,
            "trajectory": tape.trajectory.id,
            "fault": {
                "op": injection.op,
                "family": injection.family,
                "params": dict(injection.params),
                "persist": injection.persist,
                "place": injection.place,
                "tool": injection.tool,
                "step": judged.faulted.find_step(injection),
                "seq": injection.seq,
                "detect": injection.detect,
                "sham": injection.sham,
                "change": to_injected_change(injection).describe(),
                "original": _decode_quote(injection.original),
                "mutated": _decode_quote(injection.mutated),
            },
            "prefix": to_builtins(find_prefix_changes(tape)),
            "consumed_at": {"seq": consumption.seq, "why": consumption.why},
            "twin_ends": {
                twin.tape.trajectory.id: twin.tape.ending and twin.tape.ending.passed
                for twin in judged.twins
            },
            "states": {
                each.tape.trajectory.id: each.tape.ending and each.tape.ending.state
                for each in (judged.faulted, *judged.twins)
            },
            "files": {each.run: list_changes(each) for each in self.files},
        } | fields

    def to_lines(self) -> Iterator[str]:
        """Format the explanation as lines."""
        injection, verdict = self.judged.injection, self.judged.verdict
        run = self.judged.faulted.tape.trajectory
        forked = f", a fork of {run.parent}" if run.parent else ""
        yield f"{injection.id}: {run.condition} run {run.id}{forked}"
        yield from _indent_block("injected", self._describe_injection())
        yield from _indent_block("prefix", find_prefix_changes(self.judged.faulted.tape).to_lines())
        yield from _indent_block("consumed", self._describe_consumption())
        yield from _indent_block("noticed", self._describe_notice())
        yield from _indent_block("taint", self._describe_taint())
        yield from _indent_block("claim", self._describe_claim())
        yield from _indent_block("twins", self._describe_twins())
        yield from _indent_block("files", self._describe_files())
        yield from _indent_block("verdict", self._describe_verdict())
        yield from _indent_block(
            "unknown", (f"{name}: {why}" for name, why in verdict.reasons.items())
        )
        yield from _indent_block("judge", [f"version {verdict.judge_version}"])

    def _describe_injection(self) -> Iterator[str]:
        injection = self.judged.injection
        params = ", ".join(f"{key}={value}" for key, value in injection.params.items())
        at = self.judged.faulted.find_step(injection)
        step = f" (step {at})" if at is not None else ""
        detect = f", {injection.detect}" if injection.detect else ""
        yield (
            f"{injection.tool or 'the model'}{step} at {injection.place} with "
            f"{injection.op}({params}), {injection.persist}{detect}"
        )
        words = to_injected_change(injection).describe()
        if words:
            yield _shorten_quote(words)
        elif not injection.sham:
            yield f"was: {_shorten_quote(_decode_quote(injection.original) or 'nothing')}"
            yield f"now: {_shorten_quote(_decode_quote(injection.mutated) or 'nothing')}"

    def _describe_consumption(self) -> Iterator[str]:
        consumption, verdict = self.judged.consumption, self.judged.verdict
        at = f", request {consumption.seq}" if consumption.seq is not None else ""
        yield f"{_format_fact(verdict.consumed)}: {consumption.why}{at}"
        if verdict.steps_after is not None:
            yield f"the agent took {verdict.steps_after} steps with it"

    def _describe_notice(self) -> Iterator[str]:
        verdict = self.judged.verdict
        yield _format_fact(verdict.noticed) + (
            f", first at step {verdict.noticed_step}" if verdict.noticed_step is not None else ""
        )
        strength = {True: "hard", False: "soft", None: "open"}
        for signal in verdict.signals:
            yield (
                f"{signal.code} {strength[signal.hard]}, step {signal.step}: "
                f"{_shorten_quote(signal.quote)}"
            )
        if verdict.notice_probability is not None:
            yield f"noticed with a probability of {verdict.notice_probability:.2f}"
        if verdict.notice_error is not None:
            yield f"by chance with probability {verdict.notice_error:.2g}"
        if verdict.noticeable is False:
            yield "nothing that could have been noticed"
        if verdict.changes_what_model_saw is False:
            yield "the model saw what a clean twin saw"

    def _describe_taint(self) -> Iterator[str]:
        verdict = self.judged.verdict
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

    def _describe_claim(self) -> Iterator[str]:
        verdict = self.judged.verdict
        if verdict.claim is not None:
            yield f"{verdict.claim} (by {verdict.claim_basis})"
        if verdict.claim_evidence:
            yield _shorten_quote(verdict.claim_evidence)

    def _describe_twins(self) -> Iterator[str]:
        twins = self.judged.twins
        if not twins:
            yield f"none: {MIN_CLEAN_TWINS} are needed to say what the agent does anyway"
        for twin in twins[:MAX_TWINS_SHOWN]:
            ending = twin.tape.ending
            end = _format_fact(ending.passed if ending else None, "right", "wrong")
            if ending is not None and ending.passed is None and ending.state is not None:
                end = f"is {ending.state[:8]}"
            yield f"{twin.tape.trajectory.id}: end state {end}" + (
                "" if is_complete_run(twin) else ", cut off and no control"
            )
        ends = [t.tape.ending for t in twins if t.tape.ending is not None and is_complete_run(t)]
        faulted_ending = self.judged.faulted.tape.ending
        looped = faulted_ending is not None and faulted_ending.ended in ENDINGS_FAILED
        with_fault = False if looped else self.judged.verdict.passed
        excess = compare_ends([with_fault], map(is_right_ending, ends))
        if excess is not None:
            yield excess.to_line()
        if (difference := find_differing_twin_ends(twins)) is not None:
            yield f"warning: {difference}"
        if len(twins) > MAX_TWINS_SHOWN:
            right = [t.tape.ending.passed for t in twins[MAX_TWINS_SHOWN:] if t.tape.ending].count(
                True
            )
            yield f"and {len(twins) - MAX_TWINS_SHOWN} more, {right} of them right"

    def _describe_files(self) -> Iterator[str]:
        if not self.files or self.files[0].unknown is not None:
            return
        own, twin = self.files[0], self.files[1] if len(self.files) > 1 else None
        compared = compare_files(twin, own)
        for each in compared[:MAX_FILES_SHOWN]:
            change = each.faulted or each.clean
            assert change is not None
            who = "" if each.faulted else "the clean twin alone: "
            also = f"; {each.comparison}" if each.faulted and each.comparison else ""
            yield f"{who}{_shorten_quote(change.describe())}{also}"
        if (more := len(compared) - MAX_FILES_SHOWN + own.more) > 0:
            yield f"and {more} more"

    def _find_other_faults(self) -> Iterator[Injection]:
        """Yield the other faults of the run."""
        for each in self.judged.faulted.tape.injections:
            if each.repeat_of is None and not each.sham and each.id != self.judged.injection.id:
                yield each

    def _describe_verdict(self) -> Iterator[str]:
        verdict = self.judged.verdict
        ending = self.judged.faulted.tape.ending
        excluded = find_exclusion(verdict, ending.ended if ending else None)
        yield f"{verdict.outcome or 'unknown'}: {describe_outcome(verdict)}"
        if excluded is not None:
            yield f"no class: {excluded}, {explain_exclusion(excluded, verdict)}"
            yield f"what to do: {suggest_remedy(excluded, verdict)}"
        if others := [each.op for each in self._find_other_faults()]:
            yield (
                f"not counted alone: {', '.join(others)} were in the same run, and the outcome "
                "belongs to all together"
            )
        yield (
            f"end state {_format_fact(verdict.passed, 'right', 'wrong')}, "
            f"claims success: {_format_fact(verdict.claims_success)}, "
            f"baseline valid: {_format_fact(verdict.baseline_valid)}"
        )
        yield from verdict.effect_changes
        if verdict.double_action is False and verdict.lost_action is False:
            yield "no effect was doubled or lost, by the world's ledger"
        yield from (line for line in verdict.evidence if line.startswith(f"{EVIDENCE} "))
        if verdict.false_failure:
            yield "the agent says that it failed, and it did not"
        if verdict.told_wrong:
            yield "the last answer tells the wrong value"
        if difference := self.judged.end.difference:
            yield _shorten_quote(difference)
        if verdict.masked_as is not None:
            yield f"right because: {MASKED_REASONS[verdict.masked_as]}"
        if verdict.passed_given_wrong_value is not None:
            end_word = _format_fact(verdict.passed_given_wrong_value, "right", "wrong")
            yield f"if the wrong value were true, the end would be {end_word}"


MASKED_REASONS = {
    "dead": "nothing depends on the value",
    "overwritten": "a true value took its place later",
    "default": "something stood in for what was missing, and it was right",
    "lucky": "luck, as far as can be told",
}


def _indent_block(name: str, lines: Iterator[str] | list[str]) -> Iterator[str]:
    for line in lines:
        yield f"  {name:<9} {escape_controls(line)}"
        name = ""


def _format_fact(value: bool | None, yes: str = "yes", no: str = "no") -> str:
    return "unknown" if value is None else yes if value else no


def _decode_quote(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


def _shorten_quote(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= QUOTE_WIDTH else f"{line[: QUOTE_WIDTH - 3]}..."


def explanation_to_json(one: VerdictExplanation) -> str:
    """Return the explanation as one JSON object."""
    return json.dumps(one.to_dict())
