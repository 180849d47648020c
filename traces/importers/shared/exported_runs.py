"""What is only in exports of our own, by which a run comes back as it was."""

from collections.abc import Mapping

RUN_ID = "stumble.run.id"
"""The id of the run: of the root of spans, or in `extra` of a trajectory."""
HISTORY = "stumble.input.history"
"""Of the span of a request whose input is only what is new in it."""
IS_STEP = "stumble.is_step"
"""False in a message of a request that stands for an earlier one."""
UNANSWERED = "stumble.unanswered.messages"
"""Of the root: the last messages, which no response followed."""
UNKNOWN_VERDICT = "stumble.verdict.unknown"
"""Of the span of a tool of which neither success nor failure is known."""
EXPORTED_FACTS = (
    "scenario",
    "task",
    "trial",
    "seed",
    "passed",
    "reward",
    "ended",
    "verifier",
    "cost_usd",
    "cost_source",
    "seconds",
    "tokens",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
    "reasoning_tokens",
)
"""Columns of `trajectories` that an export has."""


def read_exported_facts(known: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Return the facts that an export has of its run; empty if it is not of our own."""
    if not isinstance(known.get(RUN_ID), str):
        return {}
    facts = {name: known.get(f"{prefix}{name}") for name in EXPORTED_FACTS}
    return {name: value for name, value in facts.items() if value is not None}
