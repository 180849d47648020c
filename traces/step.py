"""What exchanges mean: messages, tool calls, results, answers; and what a dialect lens is.

These are derived values. They are never written to a tape.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from traces.model import Chunk, Edit, Headers, Request
from traces.quick import quick


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation, as `role` and its canonical JSON text."""

    role: str
    content: str
    """Plain text where the message has it, else the canonical JSON of its content."""
    address: bytes
    """A hash of the canonical JSON of the whole message: equal iff they say the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """The model asks for a tool; `arguments` is JSON text exactly as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What the agent says a call returned, and where that stands in the request body."""

    call_id: str
    text: str
    start: int
    stop: int
    """body[start:stop] is the message, or conversation item, that holds it."""
    is_error: bool | None = None
    """None where the dialect has no flag for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens as the provider counted them; None where it did not say."""

    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One step of the model: text, calls, or both. `finish` None means it was cut off."""

    message: str = ""
    calls: tuple[ToolCall, ...] = ()
    model: str | None = None
    finish: str | None = None
    usage: Usage | None = None
    refused: bool = False
    """True where `message` says why the model will not answer."""
    id: str | None = field(default=None, compare=False)
    """By what a later request may name it; it says nothing of what was answered."""
    reasoning: str = field(default="", compare=False)
    """What the model thought before it answered, if the provider shows it."""
    said: tuple[Message, ...] = field(default=(), compare=False)
    """What it adds to a conversation that the provider keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a request has to do with conversations that the provider keeps."""

    previous: str | None = None
    """The answer from which it goes on; None where it holds the whole conversation."""
    lead: int = 0
    """How many of its messages, the first ones, hold for this request only: instructions."""
    silent: bool = False
    """True where it only hands its conversation over, and wants no answer: a warm-up."""


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a request says; nothing where it cannot be read."""

    messages: tuple[Message, ...] = ()
    """The conversation so far, oldest first."""
    results: tuple[Result, ...] = ()
    """The tool results in it, in order, with offsets in an identity-coded body."""
    state: State = State()


class Lens(Protocol):
    """What a dialect module provides, as module-level functions; none raises on odd bytes."""

    @property
    def NAME(self) -> str:  # noqa: N802
        """The dialect's name."""
        ...

    @property
    def LIST(self) -> str:  # noqa: N802
        """The member of a body that holds the messages."""
        ...

    def fits(self, request: Request) -> bool:
        """True if path suffix and body shape are this dialect's; the host never counts."""
        ...

    def model(self, body: bytes) -> str | None:
        """The model that was asked for."""
        ...

    def messages(self, body: bytes) -> tuple[Message, ...]:
        """The conversation so far, oldest first."""
        ...

    def results(self, body: bytes) -> tuple[Result, ...]:
        """The tool results in the request, in order, with offsets in an identity-coded body."""
        ...

    def replace(self, body: bytes, call_id: str, text: str) -> tuple[Edit, ...]:
        """The edits that put `text` in place of the results of a call; none where it says so."""
        ...

    def reading(self) -> Callable[[bytes], Asked]:
        """What reads the bodies of requests, one after the other, each as far as it is new."""
        ...

    def put(self, body: bytes, result: Result, text: str) -> tuple[Edit, ...]:
        """The edits that put `text` in place of this result; none where it says so."""
        ...

    def fail(self, body: bytes, result: Result) -> tuple[Edit, ...]:
        """The edits that mark this result as an error; none where it is, or there is no flag."""
        ...

    def read(self, headers: Headers, body: bytes) -> Answer | None:
        """The model's answer, whole or streamed or cut; None where this is no answer."""
        ...

    def write(
        self, answer: Answer, *, stream: bool, id: str, created: int
    ) -> tuple[Headers, tuple[Chunk, ...]]:
        """Headers and chunks of an answer as a provider sends it; all chunks at time 0."""
        ...
