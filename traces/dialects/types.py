"""Types of decoded model traffic: messages, tool calls, results, responses; the lens protocol.

These are derived values. They are never written to a tape.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from msgspec import Struct

from traces.model import BodyEdit, Chunk, Headers, Request
from traces.shared_sequence import SharedSequence


class ChatMessage(Struct, frozen=True, kw_only=True):
    """One message of a conversation."""

    role: str
    content: str
    """Plain text if the message has it, else the canonical JSON of its content."""
    address: bytes
    """A hash of the canonical JSON of the full message: equal if and only if the messages are."""
    media: tuple[str, ...] = ()
    """Kind of each part that is not text: image, audio, video, document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call requested by the model; `arguments` is JSON text exactly as the model wrote it."""

    id: str
    name: str
    arguments: str
    incomplete: bool = field(default=False, compare=False)
    """True if the answer ended before the arguments did."""


class HostedCall(Struct, frozen=True, kw_only=True):
    """A call of a tool that the provider ran while it answered; the agent has no part in it."""

    tool: str
    arguments: str
    """JSON text."""
    result: str | None = None
    """Its text, else JSON; None if the answer does not show it."""
    is_error: bool | None = None


class ToolResult(Struct, frozen=True, kw_only=True):
    """The result of a call as the agent sent it, and its place in the request body."""

    call_id: str
    text: str
    start: int
    stop: int
    """body[start:stop] is the message, or conversation item, that holds it."""
    is_error: bool | None = None
    """None if the dialect has no flag for it."""
    media: tuple[str, ...] = ()
    """As those of a message."""


class TokenUsage(Struct, frozen=True, kw_only=True):
    """Tokens as counted by the provider; None if not reported."""

    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """One step of the model: text, calls, or both. A `finish` of None means it was truncated."""

    message: str = ""
    calls: tuple[ToolCall, ...] = ()
    model: str | None = None
    finish: str | None = None
    usage: TokenUsage | None = None
    refused: bool = False
    """True if `message` explains why the model refuses."""
    id: str | None = field(default=None, compare=False)
    """The id with which a later request may refer to it; not part of the content."""
    reasoning: str = field(default="", compare=False)
    """The model's reasoning before the response, if the provider shows it."""
    hosted: tuple[HostedCall, ...] = field(default=(), compare=False)
    """The calls that the provider ran for it, in order."""
    media: tuple[str, ...] = field(default=(), compare=False)
    """Kind of each of its parts that is not text, as those of a message."""
    added_messages: tuple[ChatMessage, ...] = field(default=(), compare=False)
    """The messages it adds to a conversation that the provider stores."""


class ConversationLink(Struct, frozen=True, kw_only=True):
    """The relation of a request to conversations that the provider stores."""

    previous_answer: str | None = None
    """Id of the response that it continues; None if it has the full conversation."""
    leading_messages: int = 0
    """Number of leading messages that apply to this request only: instructions."""
    is_warmup: bool = False
    """True if it only stores its conversation and requests no response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """A parsed request; empty if it is invalid."""

    messages: SharedSequence[ChatMessage] = field(default_factory=SharedSequence)
    """The conversation so far, oldest first."""
    results: SharedSequence[ToolResult] = field(default_factory=SharedSequence)
    """The tool results in it, in order, with offsets in an identity-coded body."""
    state: ConversationLink = ConversationLink()


class DialectLens(Protocol):
    """The module-level functions of a dialect module; none raises on invalid bytes."""

    @property
    def NAME(self) -> str:  # noqa: N802
        """The dialect's name."""
        ...

    @property
    def MESSAGES_KEY(self) -> str:  # noqa: N802
        """The member of a body that holds the messages."""
        ...

    def can_read_request(self, request: Request, /) -> bool:
        """Whether path suffix and body shape are this dialect's; the host never counts."""
        ...

    def read_model_name(self, body: bytes) -> str | None:
        """Return the requested model."""
        ...

    def make_dialect_reader(self) -> Callable[[bytes], ModelRequest]:
        """Return a reader for successive request bodies, which parses only the new part of each."""
        ...

    def replace_result(self, body: bytes, result: ToolResult, text: str) -> tuple[BodyEdit, ...]:
        """Return the edits that replace this result by `text`; none if already equal."""
        ...

    def mark_result_failed(self, body: bytes, result: ToolResult) -> tuple[BodyEdit, ...]:
        """Return the edits that mark this result as an error; none if it is, or without a flag."""
        ...

    def parse_model_answer(self, headers: Headers, body: bytes) -> ModelAnswer | None:
        """Parse the model's response, plain, streamed or truncated; None if it is not one."""
        ...

    def write_model_answer(
        self, answer: ModelAnswer, *, stream: bool, id: str, created: int
    ) -> tuple[Headers, tuple[Chunk, ...]]:
        """Return headers and chunks of a response as a provider sends it; all chunks at time 0."""
        ...
