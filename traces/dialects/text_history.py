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
from dataclasses import dataclass
from dataclasses import replace as changed
from hashlib import blake2b

from traces import spans
from traces.dialects import openai_chat, wire
from traces.dialects.reading import replaced
from traces.encoding import plain
from traces.model import Chunk, Edit, Headers, Request
from traces.reader import Reader
from traces.step import Answer, Asked, Message, Result, ToolCall

NAME = "text_history"
LIST = "messages"

TOOL = "bash"

_OWN = re.compile(r"```mswea_bash_command[^\S\n]*\n(.*?)\n```", re.DOTALL)
_PLAIN = re.compile(r"```bash[^\S\n]*\n(.*?)\n```", re.DOTALL)
_TICK = b"`"
"""One byte is looked for by memchr, and most requests have none of these."""
_FENCES = (b"```bash", b"```mswea_bash_command")
_TOOLS = re.compile(rb'"tools"\s*:\s*\[\s*\{')
"""Tools were handed over; inside a text the quotes would be escaped."""
_RETURNED = re.compile(r"\s*<returncode>(-?\d+)</returncode>")


def commands(text: str) -> list[str]:
    """The fenced shell blocks of an answer; it is a call where there is exactly one."""
    return _OWN.findall(text) or _PLAIN.findall(text)


def _call(text: str) -> ToolCall | None:
    found = commands(text)
    if len(found) != 1:
        return None
    digest = blake2b(text.strip().encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    arguments = json.dumps({"command": found[0].strip()}, ensure_ascii=False)
    return ToolCall(id=f"{TOOL}-{digest}", name=TOOL, arguments=arguments)


def fits(request: Request) -> bool:
    """True for chat completions without tools that show the form, or have followed it."""
    if not openai_chat.fits(request):
        return False
    body = plain(request.headers, request.body) or b""
    if body.find(_TICK) < 0 or not any(body.find(each) >= 0 for each in _FENCES):
        return False
    last = body.rfind(b'"tools"')
    if last >= 0 and (_TOOLS.match(body, last) or _TOOLS.search(body, 0, last)):
        return False
    try:
        return _followed(body)
    except ValueError:
        return False


def _followed(body: bytes) -> bool:
    """True where the form is shown or followed; as a rule the first messages tell."""
    start, called = spans.array(body, b"messages"), False
    for at, stop in spans.items(body, start) if start is not None else ():
        said = _item(body[at:stop])
        if said is None:
            continue
        if said.message.role == "system" and commands(said.message.content):
            return True
        if called and said.result is not None and said.is_error is not None:
            return True
        called = said.call is not None
    return False


def model(body: bytes) -> str | None:
    """The model that was asked for."""
    return openai_chat.model(body)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What one message says, and what it says where it follows a call."""

    message: Message
    call: str | None
    """The id of the call that it makes."""
    result: Message | None
    is_error: bool | None


def _item(text: bytes) -> _Said | None:
    value = wire.parsed(text)
    if not isinstance(value, dict):
        return None
    said = openai_chat.message(value)
    call = _call(said.content) if said.role == "assistant" else None
    returned = _RETURNED.match(said.content)
    return _Said(
        message=said,
        call=call.id if call else None,
        result=changed(said, role="tool") if said.role == "user" and "content" in value else None,
        is_error=returned[1] != "0" if returned else None,
    )


class _Reading:
    """Goes through the messages in order: a user message that follows a call is its result."""

    def __init__(self) -> None:
        self._reader = Reader(LIST, _item, wire.parsed)

    def __call__(self, body: bytes) -> Asked:
        """What a body says; nothing where it cannot be read."""
        try:
            read = self._reader.read(body)
        except ValueError:
            return Asked()
        messages, results = list[Message](), list[Result]()
        seen, call = Counter[str](), None
        for said, start, stop in zip(read.items, read.starts, read.stops, strict=True):
            if said is None:
                continue
            answers = call is not None and said.result is not None
            messages.append(said.result if answers and said.result else said.message)
            if call is not None and said.result is not None:
                again = f"#{seen[call]}" if seen[call] > 1 else ""
                results.append(
                    Result(
                        call_id=call + again,
                        text=said.message.content,
                        start=start,
                        stop=stop,
                        is_error=said.is_error,
                    )
                )
            call = said.call
            seen[call or ""] += 1
        return Asked(messages=tuple(messages), results=tuple(results))


def reading() -> _Reading:
    """Clients send the whole conversation every time."""
    return _Reading()


def messages(body: bytes) -> tuple[Message, ...]:
    """The conversation in the request; what follows a call is of role `tool`."""
    return reading()(body).messages


def results(body: bytes) -> tuple[Result, ...]:
    """What followed each call, in order; an error where its return code is not 0."""
    return reading()(body).results


def put(body: bytes, result: Result, text: str) -> tuple[Edit, ...]:
    """The edits that put `text` in place of what followed a call; none where it stands there."""
    return openai_chat.put(body, result, text)


def fail(body: bytes, result: Result) -> tuple[Edit, ...]:
    """None: the dialect has no flag for a result that is an error."""
    return ()


def replace(body: bytes, call_id: str, text: str) -> tuple[Edit, ...]:
    """`put` in every message that followed the call."""
    return replaced(put, body, results(body), call_id, text)


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
    if not commands(text):
        text = "\n\n".join([text, *(f"```bash\n{_command(call)}\n```" for call in answer.calls)])
    said = changed(answer, message=text, calls=(), finish=answer.finish or "stop")
    return openai_chat.write(said, stream=stream, id=id, created=created)


def _command(call: ToolCall) -> str:
    given = wire.string(wire.load(call.arguments.encode()).get("command"))
    return call.arguments if given is None else given
