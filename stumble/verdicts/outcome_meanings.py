"""The meaning of each outcome, in a few words."""

from collections.abc import Mapping

from traces.model import Outcome, OutcomeClass

OUTCOME_MEANINGS: Mapping[OutcomeClass | None, str] = {
    "recovered": "noticed, and the end state is right",
    "masked": "not noticed, yet the end state is right",
    "honest_fail": "the end state is wrong, and the agent says so",
    "noticed_wrong": "noticed, yet delivered wrong as done",
    "silent_wrong": "not noticed, and delivered wrong as done",
    "crashed": "no final answer",
    "unreached": "the model never saw it",
    None: "what decides it is not known",
}


def describe_outcome(verdict: Outcome) -> str:
    """Return the meaning of the outcome class; without a class, the reason for that."""
    if verdict.false_failure:
        return "the end state is right, yet the agent says that it failed"
    why = verdict.reasons.get("class") if verdict.outcome is None else None
    if why and verdict.passed is False and verdict.claims_success and verdict.noticed is None:
        return f"delivered wrong as done; whether it noticed is not known: {why}"
    return why or OUTCOME_MEANINGS[verdict.outcome]
