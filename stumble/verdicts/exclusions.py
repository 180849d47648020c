"""Exclusion of verdicts from rates: the rules of the view `strikes`, for a single run."""

from collections.abc import Mapping
from typing import Literal

from faults.judging.judge import MIN_CLEAN_TWINS
from scenarios.world import VERIFIER_FAILED
from traces.model import ENDINGS_UNKNOWN, EndReason, Outcome

type Exclusion = Literal[
    "not_fired",
    "cut_off",
    "baseline_failed",
    "undecided",
    "few_twins",
    "baseline_unknown",
    "no_verdict",
]

EXCLUSION_WORDS: Mapping[str, str] = {
    "not_fired": "no fault was injected",
    "cut_off": "the run was cut off: it left the recording, or was stopped",
    "several_faults": "several faults in one run, to which all the outcome belongs",
    "baseline_failed": "the clean twins fail as well",
    "undecided": "whether the fault reached the model could not be decided",
    "few_twins": f"fewer than {MIN_CLEAN_TWINS} clean twins came to an end",
    "baseline_unknown": "nobody judged how the clean twins ended",
    "no_verdict": "what decides it is not known",
}

EXCLUSION_REMEDIES: Mapping[str, str] = {
    "not_fired": "choose a call that the agent makes (`stumble show` lists them)",
    "cut_off": "run it again; `stumble why` names what left the recording or stopped it",
    "baseline_failed": "mend the task, the agent or the verifier until clean runs pass",
    "undecided": "inject at another place (--at)",
    "few_twins": "find out why clean runs do not end (`stumble sql runs`), or make more (--twins)",
    "baseline_unknown": "give --verify or --state",
    "no_verdict": "`stumble why` names the fact that is not known",
    "several_faults": "`stumble sql fault_sets` has them; inject one fault in each run",
}
"""What to do about each exclusion."""

MIXED_VERDICT_REMEDIES: Mapping[str, str] = {
    "mixed_judges": "verdicts are of several versions of the judge: put the tapes of the older "
    "ones back, and the next command judges them anew; or name one campaign",
    "mixed_verifiers": "several verifiers judged runs of the same recordings: name a campaign of "
    "one of them",
}
"""Remedies for rates that are missing as their verdicts are not comparable."""

NO_TWINS_NOTE = "no clean twins: these runs give facts, and no rate counts a verdict on them"


def describe_exclusion(exclusion: str) -> str:
    """Describe an exclusion of several runs, with what to do about it."""
    remedy = EXCLUSION_REMEDIES.get(exclusion)
    return EXCLUSION_WORDS.get(exclusion, exclusion) + (f"; {remedy}" if remedy else "")


def check_twins(count: int) -> None:
    """Raise ValueError for a number of clean twins that is too small for a verdict, but not 0."""
    if 0 < count < MIN_CLEAN_TWINS:
        raise ValueError(
            f"{count} of the {MIN_CLEAN_TWINS} clean twins that a "
            f"verdict needs: give {MIN_CLEAN_TWINS} or more, or 0 "
            "for facts without a verdict"
        )


def find_exclusion(verdict: Outcome | None, ended: EndReason | None) -> Exclusion | None:
    """Return why the rates exclude this verdict; None if they count it."""
    if verdict is None:
        return "not_fired"
    if ended in ENDINGS_UNKNOWN:
        return "cut_off"
    if is_counted(verdict):
        return None
    if verdict.baseline_valid is False:
        return "baseline_failed"
    if verdict.consumed is None:
        return "undecided"
    if len(verdict.twins) < MIN_CLEAN_TWINS:
        return "few_twins"
    return "baseline_unknown" if verdict.baseline_valid is None else "no_verdict"


def is_counted(verdict: Outcome) -> bool:
    """Whether the verdict on a run that its agent ended is in the rates."""
    if verdict.consumed is False:
        return verdict.baseline_valid is not False
    if not verdict.consumed or not verdict.baseline_valid or verdict.outcome is None:
        return False
    # A crash or an honest failure is decided without knowing whether the agent noticed. To count
    # only these of the runs with unknown notice would bias the rates.
    decided_without_notice = verdict.outcome == "honest_fail" or (
        verdict.outcome == "crashed" and verdict.steps_after is not None
    )
    return verdict.noticed is not None or not decided_without_notice


def explain_exclusion(
    exclusion: Exclusion, verdict: Outcome | None, judgement: str | None = None
) -> str:
    """Describe the exclusion, with the reason for the missing fact if the judge gives one.

    `judgement` is the verifier's detail of the run.
    """
    if exclusion == "baseline_unknown" and (judgement or "").startswith(VERIFIER_FAILED):
        return f"{judgement}; 0 means right, 1 wrong"
    if exclusion == "no_verdict" and verdict is not None:
        facts = ("class", "passed", "noticed")
        why = next((verdict.reasons[name] for name in facts if name in verdict.reasons), None)
        return why or EXCLUSION_WORDS[exclusion]
    if exclusion == "few_twins" and verdict is not None:
        return f"{len(verdict.twins)} of {MIN_CLEAN_TWINS} clean twins came to an end"
    return EXCLUSION_WORDS[exclusion]


def suggest_remedy(exclusion: Exclusion, verdict: Outcome | None) -> str:
    """Return what to do about an exclusion, right for the run of this verdict."""
    if verdict is not None and verdict.reasons.get("passed", "").startswith(VERIFIER_FAILED):
        return (
            "mend the verifier: it exits with 0 for a right end, and with 1 for a wrong one; "
            "`|| exit 1` after its command makes every other status a wrong end"
        )
    if exclusion != "no_verdict" or verdict is None:
        return EXCLUSION_REMEDIES[exclusion]
    if verdict.passed is None:
        return "give --verify or --state, so that the end state is judged"
    if verdict.passed is False and verdict.claims_success is None:
        return "read its last answer (`stumble why`); the rate of right ends counts the run"
    if verdict.noticed is None:
        return (
            f"more clean twins than {len(verdict.twins)} (--twins), or more faulted runs "
            "(--times), weigh the sign; the rate of right ends counts the run"
        )
    return "read its last answer (`stumble why`); it does not agree with the end state"
