"""How an agent can end without a final answer."""

from typing import Literal

type Word = Literal["budget", "context", "provider"]

CODES: dict[Word, int] = {"budget": 3, "context": 4, "provider": 5}
"""The exit status of each; 0 is a final answer, 1 a crash, 2 a wrong command line."""


class Ended(Exception):
    """It is over: `word` says how, the text says what happened."""

    def __init__(self, word: Word, text: str) -> None:
        super().__init__(text)
        self.word: Word = word
