"""Why no rate counts a verdict: the rules of the view `strikes`, for one run that is at hand."""

from collections.abc import Mapping
from typing import Literal

from faults.judge import ENDINGS_UNKNOWN, TWINS
from traces.model import Ended, Outcome

type Exclusion = Literal[
    "not_fired",
    "cut_off",
    "baseline_failed",
    "undecided",
    "few_twins",
    "baseline_unknown",
    "no_verdict",
]

WORDS: Mapping[Exclusion, str] = {
    "not_fired": "no fault was injected",
    "cut_off": "the run was cut off: it left the recording, or was stopped",
    "baseline_failed": "the clean twins fail as well",
    "undecided": "whether the fault reached the model could not be decided",
    "few_twins": f"fewer than {TWINS} clean twins; give --twins {TWINS}",
    "baseline_unknown": "nobody judged how the clean twins ended; give --verify or --state",
    "no_verdict": "what decides it is not known",
}


WITHOUT_TWINS = "no clean twins: these runs give facts, and no rate counts a verdict on them"


def check_twins(count: int) -> None:
    """ValueError for a number of clean twins that costs runs and allows no verdict."""
    if 0 < count < TWINS:
        raise ValueError(
            f"{count} of the {TWINS} clean twins that a verdict needs: give {TWINS} or more, or 0 "
            "for facts without a verdict"
        )


def find_exclusion(verdict: Outcome | None, ended: Ended | None) -> Exclusion | None:
    """Why the rates leave this verdict out; None for one that they count."""
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
    if len(verdict.twins) < TWINS:
        return "few_twins"
    return "baseline_unknown" if verdict.baseline_valid is None else "no_verdict"


def is_counted(verdict: Outcome) -> bool:
    """Whether a run that its agent brought to an end is in the rates."""
    if verdict.consumed is False:
        return verdict.baseline_valid is not False
    if not verdict.consumed or not verdict.baseline_valid or verdict.outcome is None:
        return False
    # A crash and an honest failure are told without knowing who noticed; such runs alone would
    # stand for all others of which it is not known.
    told = verdict.outcome == "honest_fail" or (
        verdict.outcome == "crashed" and verdict.steps_after is not None
    )
    return verdict.noticed is not None or not told


def explain(exclusion: Exclusion, verdict: Outcome | None) -> str:
    """The reason in words; why a fact that decides is missing, if the judge knows it."""
    if exclusion == "no_verdict" and verdict is not None:
        facts = ("class", "passed", "noticed")
        why = next((verdict.reasons[name] for name in facts if name in verdict.reasons), None)
        return why or WORDS[exclusion]
    if exclusion == "few_twins" and verdict is not None:
        return f"{len(verdict.twins)} of {TWINS} clean twins came to an end; give --twins {TWINS}"
    return WORDS[exclusion]
