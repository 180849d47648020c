"""The reasons for which an agent stops without a final answer, and their exit codes."""

from typing import Literal

type StopReason = Literal["budget", "context", "provider"]

EXIT_CODES: dict[StopReason, int] = {"budget": 3, "context": 4, "provider": 5}
"""Exit status of each reason; 0 is a final answer, 1 a crash, 2 a wrong command line."""


class AgentStopped(Exception):
    """The agent stopped without a final answer; `reason` is the cause, the message the details."""

    def __init__(self, word: StopReason, text: str) -> None:
        super().__init__(text)
        self.reason: StopReason = word
