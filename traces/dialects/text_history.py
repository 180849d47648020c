"""Chat completions of an agent that has no tools: its model writes a shell command as text.

Wire facts (mini-swe-agent 1 and its text-based form in 2): the system message shows the form; an
answer with exactly one fenced block, tagged `bash` or `mswea_bash_command`, is a call; the next
user message is its result and begins with `<returncode>N</returncode>`, if the command ended. An
answer with no block or several is refused by the agent and is no call.

No id crosses the wire, so a call is named after the text of the answer that made it. A text that
comes again is counted: its second result is `<name>#2`, as the conversation names it.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import replace as changed
from hashlib import blake2b

from traces import spans
from traces.dialects import openai_chat, wire
from traces.encoding import plain
from traces.model import Chunk, Edit, Headers, Request
from traces.step import Answer, Message, Result, State, ToolCall

NAME = "text_history"

TOOL = "bash"

_OWN = re.compile(r"```mswea_bash_command[^\S\n]*\n(.*?)\n```", re.DOTALL)
_PLAIN = re.compile(r"```bash[^\S\n]*\n(.*?)\n```", re.DOTALL)
_RETURNED = re.compile(r"\s*<returncode>(-?\d+)</returncode>")


def _commands(text: str) -> list[str]:
    return _OWN.findall(text) or _PLAIN.findall(text)


def _call(text: str) -> ToolCall | None:
    commands = _commands(text)
    if len(commands) != 1:
        return None
    digest = blake2b(text.strip().encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    arguments = json.dumps({"command": commands[0].strip()}, ensure_ascii=False)
    return ToolCall(id=f"{TOOL}-{digest}", name=TOOL, arguments=arguments)


def fits(request: Request) -> bool:
    """True for chat completions without tools that show the form, or have followed it."""
    if not openai_chat.fits(request):
        return False
    body = plain(request.headers, request.body) or b""
    if b"```bash" not in body and b"```mswea_bash_command" not in body:
        return False
    value = wire.load(body)
    if value.get("tools"):
        return False
    shown = any(
        _commands(wire.text(message.get("content")))
        for message in wire.tables(value.get("messages"))
        if message.get("role") == "system"
    )
    return shown or any(_RETURNED.match(turn.text) for turn in _turns(body))


@dataclass(frozen=True, slots=True)
class _Turn:
    """A user message that follows a call."""

    call_id: str
    number: int
    text: str
    span: wire.Span


def _turns(body: bytes) -> Iterator[_Turn]:
    if not wire.load(body):
        return
    top = spans.members(body, spans.root(body))
    seen, call = Counter[str](), None
    for number, message in enumerate(spans.objects(body, top.get(b"messages"))):
        role, text = wire.value(body, message, b"role"), wire.text(_content(body, message))
        if call is not None and role == "user" and b"content" in message:
            again = f"#{seen[call.id]}" if seen[call.id] > 1 else ""
            yield _Turn(call.id + again, number, text, message[b"content"])
        call = _call(text) if role == "assistant" else None
        if call is not None:
            seen[call.id] += 1


def _content(body: bytes, message: dict[bytes, wire.Span]) -> object:
    return wire.value(body, message, b"content")


def model(body: bytes) -> str | None:
    """The model that was asked for."""
    return openai_chat.model(body)


def messages(body: bytes) -> tuple[Message, ...]:
    """The conversation in the request; what follows a call is of role `tool`."""
    numbers = {turn.number for turn in _turns(body)}
    return tuple(
        changed(message, role="tool") if number in numbers else message
        for number, message in enumerate(openai_chat.messages(body))
    )


def state(body: bytes) -> State:
    """Clients send the whole conversation every time."""
    return State()


def results(body: bytes) -> tuple[Result, ...]:
    """What followed each call, in order; an error where its return code is not 0."""
    return tuple(
        Result(
            call_id=turn.call_id,
            text=turn.text,
            start=turn.span[0],
            stop=turn.span[1],
            is_error=found[1] != "0" if (found := _RETURNED.match(turn.text)) else None,
        )
        for turn in _turns(body)
    )


def replace(body: bytes, call_id: str, text: str) -> tuple[Edit, ...]:
    """The edits that put `text` in place of what followed a call; none where it stands there."""
    edits: list[Edit] = []
    for turn in _turns(body):
        if turn.call_id == call_id and turn.text != text:
            edits += wire.put(body, wire.strings(body, turn.span) or [turn.span], text)
    return tuple(edits)


def read(headers: Headers, body: bytes) -> Answer | None:
    """What the model answered; its text stays whole, the command in it is a call as well.

    A text that was cut off is no call: its name would not be that of the whole text.
    """
    answer = openai_chat.read(headers, body)
    if answer is None:
        return None
    call = _call(answer.message) if answer.finish is not None else None
    return changed(answer, calls=(call,) if call else ())


def write(
    answer: Answer, *, stream: bool, id: str, created: int
) -> tuple[Headers, tuple[Chunk, ...]]:
    """Headers and chunks of this answer as a provider sends it; all chunks at time 0.

    A text that holds no command yet gets those of the calls, each in a block of its own.
    """
    text = answer.message
    if not _commands(text):
        text = "\n\n".join([text, *(f"```bash\n{_command(call)}\n```" for call in answer.calls)])
    said = changed(answer, message=text, calls=(), finish=answer.finish or "stop")
    return openai_chat.write(said, stream=stream, id=id, created=created)


def _command(call: ToolCall) -> str:
    given = wire.string(wire.load(call.arguments.encode()).get("command"))
    return call.arguments if given is None else given
