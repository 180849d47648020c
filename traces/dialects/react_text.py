"""Chat completions of an agent that writes its calls as text: ReAct.

Wire facts (Yao et al. 2023, and the prompts of LangChain and LlamaIndex that follow it): the prompt
shows the words `Action:` and `Observation:`, no tools are offered, a response ends in one call

    Action: get_order[ord-7314]             or  Action: get_order(id="ord-7314")
    Action: get_order                       or  Action: {"name": "get_order", "arguments": {...}}
    Action Input: {"id": "ord-7314"}

and the next user message is its result, which begins with `Observation:`. `Action: Finish[...]` is
an answer and no call. A history that is one growing prompt has no results of its own, and is not
read.

No id is on the wire: calls are named and numbered as in `mini_swe_agent`.
"""

import ast
import json
import re
from copy import replace as changed
from hashlib import blake2b

from traces.bodies.content_encoding import read_content
from traces.dialects import json_access, mini_swe_agent, openai_chat
from traces.dialects.mini_swe_agent import TextHistoryMessage, TextHistoryReader
from traces.dialects.types import ModelAnswer, ToolCall, ToolResult
from traces.model import BodyEdit, Chunk, Headers, Request

NAME = "react_text"
MESSAGES_KEY = "messages"

_ACTION = re.compile(r"^\s*\**Action\**:\**[^\S\n]*(?P<action>\S[^\n]*)", re.MULTILINE)
_INPUT = re.compile(r"^\s*\**Action Input\**:\**[^\S\n]*(?P<input>.*)", re.MULTILINE | re.DOTALL)
_WITH_ARGUMENTS = re.compile(
    r"(?P<name>[\w.-]+)\s*(?:\[(?P<text>.*)\]|\((?P<call>.*)\))\s*$", re.DOTALL
)
_OBSERVED = re.compile(r"\s*\**Observation\**:\**\s*")
_FINISHES = ("finish", "final answer", "final_answer")


def can_read_request(request: Request) -> bool:
    """Whether it is a chat completion without tools that shows or follows the form."""
    if not openai_chat.can_read_request(request):
        return False
    body = read_content(request)
    if body.find(b"Action:") < 0 or body.find(b"Observation") < 0:
        return False
    return not mini_swe_agent.offers_tools(body)


def read_model_name(body: bytes) -> str | None:
    """Return the requested model."""
    return openai_chat.read_model_name(body)


def parse_action(text: str) -> ToolCall | None:
    """Return the call that a response makes; None if it makes none, or several."""
    before = text.partition("\nObservation:")[0]
    actions = list(_ACTION.finditer(before))
    if len(actions) != 1:
        return None
    [action] = actions
    given = _INPUT.search(before, action.end())
    name, arguments = _parse_action_text(action["action"].strip(), given and given["input"].strip())
    if not name or name.casefold() in _FINISHES:
        return None
    digest = blake2b(text.strip().encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    encoded = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(id=f"{name}-{digest}", name=name, arguments=encoded)


def _parse_action_text(action: str, given: str | None) -> tuple[str, object]:
    """Return the tool and its arguments as an object."""
    if action.startswith("{"):
        value = json_access.load_json_object(action.encode())
        name = value.get("name", value.get("action", value.get("tool")))
        arguments = value.get("arguments", value.get("action_input", value.get("input")))
        return json_access.to_optional_string(name) or "", _to_arguments(arguments)
    if given is not None:
        return action.strip("`*"), _to_arguments(given)
    found = _WITH_ARGUMENTS.match(action)
    if found is None:
        return "", {}
    if found["call"] is not None:
        return found["name"], _parse_call_arguments(f"f({found['call']})")
    return found["name"], _to_arguments(found["text"])


def _to_arguments(value: object) -> object:
    """Return an object: as it is or as JSON text has it, else the text as its member `input`."""
    if isinstance(value, str):
        text = value.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            return {"input": value}
        return parsed if isinstance(parsed, dict) else {"input": value}
    return value if isinstance(value, dict) else {"input": value}


def _parse_call_arguments(text: str) -> object:
    """Return the arguments of a call in Python's syntax, by name; else its text as `input`."""
    try:
        call = ast.parse(text, mode="eval").body
        if not isinstance(call, ast.Call):
            return {"input": text}
        named = {each.arg: ast.literal_eval(each.value) for each in call.keywords if each.arg}
        placed = {f"input{n or ''}": ast.literal_eval(each) for n, each in enumerate(call.args)}
        json.dumps(placed | named)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return {"input": text.removeprefix("f(").removesuffix(")")}
    only = next(iter(placed.values())) if len(call.args) == 1 and not named else None
    return only if isinstance(only, dict) else placed | named


def _read_react_message(text: bytes) -> TextHistoryMessage | None:
    value = json_access.parse_json_text(text)
    if not isinstance(value, dict):
        return None
    message = openai_chat.read_chat_message(value)
    call = parse_action(message.content) if message.role == "assistant" else None
    observed = _OBSERVED.match(message.content) if message.role == "user" else None
    return TextHistoryMessage(
        message=message,
        call=call.id if call else None,
        result=changed(message, role="tool", content=message.content[observed.end() :])
        if observed
        else None,
        is_error=None,
    )


def make_dialect_reader() -> TextHistoryReader:
    """Return a reader of full conversations."""
    return TextHistoryReader(_read_react_message)


def replace_result(body: bytes, result: ToolResult, text: str) -> tuple[BodyEdit, ...]:
    """Return the edits that replace an observation by `text`; none if it is already that text."""
    item = json_access.load_json_object(body[result.start : result.stop])
    observed = _OBSERVED.match(openai_chat.read_chat_message(item).content)
    prefix = observed[0] if observed else ""
    return openai_chat.replace_result(
        body, changed(result, text=prefix + result.text), prefix + text
    )


def mark_result_failed(body: bytes, result: ToolResult) -> tuple[BodyEdit, ...]:
    """Return no edits: the form has no error flag."""
    return ()


def parse_model_answer(headers: Headers, body: bytes) -> ModelAnswer | None:
    """Parse the model's response; the text stays complete, and its action is also a call."""
    response = openai_chat.parse_model_answer(headers, body)
    if response is None:
        return None
    call = parse_action(response.message) if response.finish is not None else None
    return changed(response, calls=(call,) if call else ())


def write_model_answer(
    answer: ModelAnswer, *, stream: bool, id: str, created: int
) -> tuple[Headers, tuple[Chunk, ...]]:
    """Return headers and chunks of this response as a provider sends it; all chunks at time 0.

    A text without an action gets that of the first call.
    """
    text = answer.message
    if parse_action(text) is None and answer.calls:
        call = answer.calls[0]
        text = f"{text}\nAction: {call.name}\nAction Input: {call.arguments}".lstrip()
    text_answer = changed(answer, message=text, calls=(), finish=answer.finish or "stop")
    return openai_chat.write_model_answer(text_answer, stream=stream, id=id, created=created)
