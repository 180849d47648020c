"""Chat completions of an agent without tools: its model writes a shell command as text.

Wire facts (mini-swe-agent 1 and its text-based form in 2): the system message shows the form; a
response with exactly one fenced block, tagged `bash` or `mswea_bash_command`, is a call; the next
user message is its result and begins with `<returncode>N</returncode>`, if the command finished.
The agent refuses a response with no block or several, which is no call.

No id is on the wire, so a call is named after the text of the response that made it. A repeated
text is numbered: its second result is `<name>#2`, as in the conversation.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from copy import replace as changed
from hashlib import blake2b
from typing import Self

from msgspec import Struct

from traces.bodies import json_offsets
from traces.bodies.content_encoding import read_content
from traces.bodies.incremental_json import IncrementalListReader
from traces.bodies.repeated_search import RepeatedSearch
from traces.dialects import json_access, openai_chat
from traces.dialects.conversation_fold import ConversationFold, ConversationFolds
from traces.dialects.types import ChatMessage, ModelAnswer, ModelRequest, ToolCall, ToolResult
from traces.model import BodyEdit, Chunk, Headers, Request

NAME = "text_history"
MESSAGES_KEY = "messages"

TOOL = "bash"

_OWN = re.compile(r"```mswea_bash_command[^\S\n]*\n(.*?)\n```", re.DOTALL)
_PLAIN = re.compile(r"```bash[^\S\n]*\n(.*?)\n```", re.DOTALL)
_TICK = b"`"
"""A single byte is searched with memchr, and most requests have few of them."""
_FIND_FENCES = (RepeatedSearch(b"```bash"), RepeatedSearch(b"```mswea_bash_command"))
_TOOLS = re.compile(rb'"tools"\s*:\s*\[\s*\{')
"""Matches a non-empty `tools` member; inside a text the quotes would be escaped."""
_NEAR = 1 << 12
"""Bytes at both ends of a body in which its tools are searched first: its messages may be long."""
_RETURNED = re.compile(r"\s*<returncode>(-?\d+)</returncode>")


def find_shell_blocks(text: str) -> list[str]:
    """Return the fenced shell blocks of a response; exactly one is a call."""
    return _OWN.findall(text) or _PLAIN.findall(text)


def _to_bash_call(text: str) -> ToolCall | None:
    blocks = find_shell_blocks(text)
    if len(blocks) != 1:
        return None
    digest = blake2b(text.strip().encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    arguments = json.dumps({"command": blocks[0].strip()}, ensure_ascii=False)
    return ToolCall(id=f"{TOOL}-{digest}", name=TOOL, arguments=arguments)


def can_read_request(request: Request) -> bool:
    """Whether it is a chat completion without tools that shows or follows the form."""
    if not openai_chat.can_read_request(request):
        return False
    body = read_content(request)
    if _has_tools_near_an_end(body) or not _has_shell_fence(body):
        return False
    if offers_tools(body):
        return False
    try:
        return _has_text_commands(body)
    except ValueError:
        return False


def offers_tools(body: bytes) -> bool:
    """Whether a request body has a non-empty member `tools`."""
    if _has_tools_near_an_end(body):
        return True
    last = body.rfind(b'"tools"')
    return last >= 0 and bool(_TOOLS.search(body, 0, last + _NEAR))


def _has_tools_near_an_end(body: bytes) -> bool:
    """Whether tools are before or after the messages, as clients write them."""
    first = body.find(b'"tools"', 0, _NEAR)
    last = body.rfind(b'"tools"', max(0, len(body) - _NEAR))
    return any(at >= 0 and _TOOLS.match(body, at) for at in (first, last))


def _has_shell_fence(body: bytes) -> bool:
    """Whether a fence is in the body; each search is native, as a body may be all ticks."""
    return body.find(_TICK) >= 0 and any(find(body) >= 0 for find in _FIND_FENCES)


def _has_text_commands(body: bytes) -> bool:
    """Whether the form is shown or followed; the first messages usually decide."""
    start, has_call = json_offsets.find_json_array(body, b"messages"), False
    for at, stop in json_offsets.iter_json_items(body, start) if start is not None else ():
        parsed = _read_mini_swe_message(body[at:stop])
        if parsed is None:
            continue
        if parsed.message.role == "system" and find_shell_blocks(parsed.message.content):
            return True
        if has_call and parsed.result is not None and parsed.is_error is not None:
            return True
        has_call = parsed.call is not None
    return False


def read_model_name(body: bytes) -> str | None:
    """Return the requested model."""
    return openai_chat.read_model_name(body)


class TextHistoryMessage(Struct, frozen=True, kw_only=True):
    """One parsed message, with its form as a result if it follows a call."""

    message: ChatMessage
    call: str | None
    """The id of the call that it makes."""
    result: ChatMessage | None
    is_error: bool | None


def _read_mini_swe_message(text: bytes) -> TextHistoryMessage | None:
    value = json_access.parse_json_text(text)
    if not isinstance(value, dict):
        return None
    message = openai_chat.read_chat_message(value)
    call = _to_bash_call(message.content) if message.role == "assistant" else None
    returned = _RETURNED.match(message.content)
    return TextHistoryMessage(
        message=message,
        call=call.id if call else None,
        result=changed(message, role="tool")
        if message.role == "user" and "content" in value
        else None,
        is_error=returned[1] != "0" if returned else None,
    )


class TextHistoryReader:
    """Reads the messages in order: a user message after a call is its result."""

    def __init__(self, read_message: Callable[[bytes], TextHistoryMessage | None]) -> None:
        self._reader = IncrementalListReader(
            MESSAGES_KEY, read_message, json_access.parse_json_text
        )
        self._folds = ConversationFolds(TextHistoryFold)

    def __call__(self, body: bytes) -> ModelRequest:
        """Read a request body; empty if it is invalid."""
        try:
            parsed = self._reader.read(body)
        except ValueError:
            return ModelRequest()
        return self._folds.read(parsed)


class TextHistoryFold(ConversationFold[TextHistoryMessage]):
    """A user message after a call is its result."""

    _call: str | None = None

    def __init__(self, leading: Sequence[ChatMessage] = ()) -> None:
        super().__init__(leading)
        self._call_counts = Counter[str]()

    def copy(self) -> Self:
        copied = super().copy()
        copied._call_counts = self._call_counts.copy()
        return copied

    def add_item(self, item: TextHistoryMessage, start: int, stop: int) -> None:
        call, count = self._call, self._call_counts[self._call or ""]
        if call is None or item.result is None:
            self.add_message(item.message)
        else:
            self.add_message(item.result)
            self.add_result(
                ToolResult(
                    call_id=f"{call}#{count}" if count > 1 else call,
                    text=item.result.content,
                    start=start,
                    stop=stop,
                    is_error=item.is_error,
                )
            )
        self._call = item.call
        self._call_counts[item.call or ""] += 1


def make_dialect_reader() -> TextHistoryReader:
    """Return a reader of full conversations."""
    return TextHistoryReader(_read_mini_swe_message)


def replace_result(body: bytes, result: ToolResult, text: str) -> tuple[BodyEdit, ...]:
    """Return the edits that replace a result by `text`; none if it is already that text."""
    return openai_chat.replace_result(body, result, text)


def mark_result_failed(body: bytes, result: ToolResult) -> tuple[BodyEdit, ...]:
    """Return no edits: the dialect has no error flag."""
    return ()


def parse_model_answer(headers: Headers, body: bytes) -> ModelAnswer | None:
    """Parse the model's response; the text stays complete, and its command is also a call.

    A truncated text is no call: its name would not be that of the complete text.
    """
    response = openai_chat.parse_model_answer(headers, body)
    if response is None:
        return None
    call = _to_bash_call(response.message) if response.finish is not None else None
    return changed(response, calls=(call,) if call else ())


def write_model_answer(
    answer: ModelAnswer, *, stream: bool, id: str, created: int
) -> tuple[Headers, tuple[Chunk, ...]]:
    """Return headers and chunks of this response as a provider sends it; all chunks at time 0.

    A text without a command gets those of the calls, in one block each.
    """
    text = answer.message
    if not find_shell_blocks(text):
        text = "\n\n".join(
            [text, *(f"```bash\n{_read_bash_command(call)}\n```" for call in answer.calls)]
        )
    text_answer = changed(answer, message=text, calls=(), finish=answer.finish or "stop")
    return openai_chat.write_model_answer(text_answer, stream=stream, id=id, created=created)


def _read_bash_command(call: ToolCall) -> str:
    command = json_access.to_optional_string(
        json_access.load_json_object(call.arguments.encode()).get("command")
    )
    return call.arguments if command is None else command
