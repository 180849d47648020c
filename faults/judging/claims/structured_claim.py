"""Structured finals: a call that submits or hands over, JSON with a status, a marked answer."""

import json
import re
from collections.abc import Iterator, Mapping
from copy import replace
from typing import Literal

from msgspec import Struct

from faults.judging.claims.final_turns import FinalToolCall
from faults.judging.claims.sentences import clip_long_text, split_clipped_parts

type ClaimStatus = Literal["delivered", "partial", "abstained", "asks", "admits_failure"]


class StructuredFinal(Struct, frozen=True):
    """The content of a structured final: a status, a text to be read, or both."""

    status: ClaimStatus | None
    text: str | None
    quote: str
    is_answer: bool = True
    """Whether the text is marked as the answer: then a plain statement is an answer."""
    hands_over: bool = False
    """Whether it is a call that hands over to another person or agent."""
    is_data: bool = False
    """Whether it is JSON in which no member is known to be an answer."""
    submits: bool = False
    """Whether it is a call whose name says that the task is complete."""


_STATUSES: Mapping[str, ClaimStatus] = {
    **dict.fromkeys(
        ("success", "successful", "succeeded", "ok", "okay", "done", "complete", "completed",
         "finished", "resolved", "passed", "pass", "delivered", "fulfilled", "solved", "fixed",
         "true", "yes", "0"),
        "delivered",
    ),
    **dict.fromkeys(
        ("fail", "failed", "failure", "error", "errored", "aborted", "incomplete", "unresolved",
         "not_done", "notdone", "unfinished", "impossible", "infeasible", "crashed", "timeout",
         "timed_out", "gave_up", "unable", "stuck", "false", "no", "1"),
        "admits_failure",
    ),
    **dict.fromkeys(
        ("partial", "partially", "partially_completed", "partial_success", "partially_done",
         "mixed", "completed_with_errors", "degraded"),
        "partial",
    ),
    **dict.fromkeys(
        ("refused", "declined", "rejected", "denied", "abstained", "abstain", "escalated",
         "escalate", "transferred", "handed_over", "handoff", "hand_off", "needs_human",
         "human_required", "not_allowed", "forbidden", "skipped", "cancelled", "withheld",
         "blocked", "deferred", "postponed", "parked", "quarantined", "held", "frozen"),
        "abstained",
    ),
    **dict.fromkeys(
        ("needs_input", "input_required", "needs_confirmation", "awaiting_confirmation", "waiting",
         "question", "clarification", "needs_clarification", "pending_confirmation",
         "awaiting_input", "requires_input", "on_hold", "ready_for_confirmation",
         "awaiting_user", "needs_approval", "awaiting_approval", "confirmation_required"),
        "asks",
    ),
}  # fmt: skip
_STATUS_KEYS = (
    "status", "state", "outcome", "success", "succeeded", "ok", "completed", "complete", "done",
    "task_completed", "task_complete", "task_status", "is_complete", "is_done", "is_finished",
    "is_success", "finished", "resolved", "passed", "exit_code", "returncode",
)  # fmt: skip
_ANSWER_KEYS = ("answer", "final_answer", "finalanswer", "final_output", "final_response", "value")
_STEP_KEYS = ("commands", "tool_calls", "actions", "next_action")
_GIVEN_UP = re.compile(r"(?:give|gave|giving)n?[_ -]up\w*|abandon\w*|abort(?:ed|ing)?(?:_\w+)?")
"""Values that say the same under any name."""
_INVERTED = ("exit_code", "returncode")
_CALL_NAME_KEYS = ("name", "tool", "function", "tool_name", "action", "function_name")
_ARGUMENT_KEYS = ("args", "arguments", "parameters", "input", "kwargs", "action_input", "params")
_CALL_KEYS = frozenset(("arguments", "tool", "function", "tool_call", "tool_calls", "action"))
_SENTENCE = re.compile(r"(?:\S+\s+){3}\S|[\u3040-\u30ff\u4e00-\u9fff]{4}")
"""Matches sentences, which distinguish messages from data."""
MIN_MEMBERS = 2
"""Minimum number of members without which a text is no structure."""
_YAML_LINE = re.compile(r"([a-z][\w.-]{0,40}):[ \t]+(\S[^\n]{0,200})")
_LOGFMT_WORD = re.compile(r"([a-z][\w.-]{0,40})=(\S+)")
_DEPTH = 20
"""Levels of JSON that are read."""
_NAME = r"[\w.:/-]*?"
_SUBMITS = re.compile(
    rf"(?i)^{_NAME}(?:^|[_.:/-]|\b)(?:submit|finish|finished|final|final_answer|final_result|"
    r"attempt_completion|complete|complete_task|task_complete|task_completed|task_done|"
    r"mark_done|mark_complete|done|end_task|give_answer|"
    r"(?:tasks?|goals?|objectives?|mission)_(?:is_)?(?:accomplished|achieved|finished|reached)|"
    r"answer|respond|submit_\w+|finish_\w+|"
    r"report_result|report_status|return_answer|send_final_\w+)$"
)
_COMPLETES = re.compile(r"(?i)submit|finish|complet|done|accomplish|achiev|reached")
_HANDS_OVER = re.compile(
    r"(?i)(transfer_?(to|call)|transfer_\w*(human|agent)|hand_?(off|over)|escalat|"
    r"(contact|call|notify|page|request|connect|route)_?\w*(human|support|operator|supervisor)|"
    r"human_(agent|handoff|review|takeover)|open_(support_)?ticket)"
)
_ASKS = re.compile(
    r"(?i)(^|[_.:/-])(ask(_\w*)?(user|human|question|clarification|confirmation|customer)\w*|"
    r"ask|request_(user_)?(input|clarification|confirmation|approval)|get_(user_)?(input|"
    r"confirmation)|clarify|prompt_user|question|await_(user|approval|confirmation))$"
)
_GIVES_UP = re.compile(
    r"(?i)(^|[_.:/-])(give_up|fail(_task|_with\w*)?|abort(_task)?|report_(failure|error|problem)|"
    r"cannot_complete|mark_(failed|infeasible|impossible))$"
)
_REFUSES = re.compile(r"(?i)(^|[_.:/-])(refuse|decline|abstain|reject)(_\w+)?$")
_CALL = re.compile(r"(?s)^\s*([A-Za-z_][\w.:/-]{0,80})\s*[(\[{](.*?)[)\]}]?\s*$")
_SUBMITS_BY_COMMAND = re.compile(
    r"(?im)^[^\w\n]*+(?:echo\s+\W?)?(?:submit|COMPLETE_TASK\w*|FINAL_OUTPUT|TASK_COMPLETED?)\b(?!\s*[(\[{:])"
)
_BLOCK = re.compile(r"```[\w+-]*\n(.*?)(?:```|\Z)", re.DOTALL)
_ACTION = re.compile(
    r"(?im)^\s*(?:action\s*\d*\s*:\s*(?!finish|submit|answer|none|final)\w|(?:GET|POST|PUT|PATCH|DELETE)"
    r"\s+\S*/|<(?:tool_call|function|invoke|execute)\w*[ =>]|functions?\.\w+\()"
)
_LOOSE = re.compile(r'[\[{:,]\s*"((?:[^"\\]|\\.)*+)"(?=\s*[,}\]])')
_LOOSE_STATUS = re.compile(rf'^[\s{{]*"({"|".join(_STATUS_KEYS)})"\s*:\s*"?([\w -]+)', re.MULTILINE)
_LOOSE_STEPS = re.compile(rf'"(?:{"|".join(_STEP_KEYS)})"\s*:\s*(?:\[\s*[^\]\s]|"\w)')
_STEP_KIND = re.compile(r"(?i)(?:\w+_)?thought")
_KIND_KEYS = ("kind", "type")
_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LABELLED_CALL = re.compile(r"(?:\A|\n)[^\w\n]*(?i:action)[ \d]*:\s*(\{[^\n]*\})\s*\Z")
_FENCED = re.compile(r"```(?:json)?\s*(\{.*?\})\s*```", re.DOTALL)
_MARKED = re.compile(
    r"(?im)^(?:[^\w\n]|_)*+(?:action\s*:\s*)?(?:the |my )?"
    r"(?:final[ _](?:answer|result|output|response)|answer|antwort|"
    r"réponse(?: finale)?|respuesta(?: final)?|resposta(?: final)?|risposta(?: finale)?|"
    r"endergebnis|答案|最终答案|最終回答|回答|答え)(?:[^\w\n]|_)*?(?::|：|;|=|\bis\b)[ \t*_`]*(.*)$"
)
_TAGGED = re.compile(
    r"(?is)(?:<(final_?answer|answer|result|solution)>(.*?)</\1>|\[answer\](.*?)(?:\[/answer\]|\Z)|"
    r"\\boxed\{(.*)\})"
)
_FINISHES = re.compile(
    r"(?ims)^[^\S\n]*(?:\w+[ \d]*:\s*)?(?:finish|submit|final_answer|answer|complete|stop)\s*"
    r"[(\[]\s*(.*?)\s*[)\]]*\s*\Z"
)


def read_structured_call(turn: FinalToolCall) -> StructuredFinal | None:
    """Read a call that submits, gives up, asks or hands over; None for any other."""
    call, quote = turn.call[:20_000], turn.call[:200]
    if _SUBMITS_BY_COMMAND.search(call[:2000]):
        return StructuredFinal("delivered", None, quote)
    written = _write_call(_parse_json_object(call.strip()) or {})
    match = _CALL.match(written or call)
    if match is None:
        return None
    name, inside = _CAMEL_CASE.sub("_", match[1]), match[2].strip()
    for pattern, status in _BY_NAME:
        if pattern.search(name):
            return StructuredFinal(status, None, quote, hands_over=pattern is _HANDS_OVER)
    arguments = _parse_json_object(inside if inside.startswith("{") else "{" + inside + "}")
    if not _SUBMITS.match(name):
        method = _CAMEL_CASE.sub("_", str((arguments or {}).get("method", "")))
        return StructuredFinal("delivered", None, quote) if _SUBMITS.match(method) else None
    if arguments is not None:
        read = read_structured_object(arguments, quote) or StructuredFinal("delivered", None, quote)
        return replace(read, submits=_COMPLETES.search(name) is not None)
    return (
        StructuredFinal(None, inside, quote)
        if inside
        else StructuredFinal("delivered", None, quote)
    )


_BY_NAME: tuple[tuple[re.Pattern[str], ClaimStatus], ...] = (
    (_HANDS_OVER, "abstained"),
    (_REFUSES, "abstained"),
    (_GIVES_UP, "admits_failure"),
    (_ASKS, "asks"),
)


def has_submit_command(text: str) -> bool:
    """Return whether the last code block of a message runs a command that submits."""
    blocks = _BLOCK.findall(clip_long_text(text))
    return bool(blocks and _SUBMITS_BY_COMMAND.search(blocks[-1]))


def has_final_action(text: str) -> bool:
    """Return whether a message ends in a call written as text, or in code to be run."""
    text = clip_long_text(text).rstrip()
    last = text.rpartition("\n\n")[2]
    return bool(_ACTION.search(last)) or text.endswith("```") and bool(_BLOCK.search(text))


_TAGGED_ACTION = re.compile(
    r"(?is)<(execute|code|python|bash|sh|shell|run|command|action|tool|tool_call|tool_use|"
    r"function_call|function|invoke)\b[^<>]*>(?:(?!<\1\b).)*?(?:</\1>)?\s*\Z"
)


def has_tagged_action(text: str) -> bool:
    """Return whether a message ends in a tagged block to be executed, complete or cut."""
    match = _TAGGED_ACTION.search(clip_long_text(text))
    return match is not None and "<solution" not in match[0].casefold()


def read_structured_text(text: str) -> StructuredFinal | None:
    """Read a message that is JSON, ends in a call or marks its answer; None for free text."""
    text = clip_long_text(text)
    if (labelled := _LABELLED_CALL.search(text)) is not None:
        written = _write_call(_parse_json_object(labelled[1]) or {})
        if written is not None:
            found = read_structured_call(FinalToolCall(written))
            return found or StructuredFinal(None, "", written[:200])
    for candidate in (text.strip(), *_FENCED.findall(text)[-1:]):
        value = _parse_json_object(candidate)
        if value is not None:
            structured = read_structured_object(value, candidate[:200])
            return structured or StructuredFinal(None, "", candidate[:200])
    if text.lstrip().startswith("{"):
        return _read_broken_json(text)
    if _is_call_list(text):
        return StructuredFinal(None, "", text[:200])
    if members := _parse_members(text):
        return read_structured_object(members, text[:200])
    if tagged := list(_TAGGED.finditer(text)):
        inside = next(part for part in tagged[-1].groups()[1:] if part is not None)
        return _make_marked_answer(inside, tagged[-1][0])
    if finishes := _FINISHES.search(text):
        return _make_marked_answer(finishes[1], finishes[0])
    if marked := list(_MARKED.finditer(text)):
        answer = marked[-1][1].strip() or text[marked[-1].end() :].strip()
        return _make_marked_answer(answer, marked[-1][0] if marked[-1][1].strip() else answer)
    return None


def read_structured_object(given: Mapping[str, object], quote: str) -> StructuredFinal | None:
    """Read a JSON object by its status, else by its answer, else by all its sentences."""
    values = {key.casefold().replace("-", "_").replace(" ", "_"): given[key] for key in given}
    kinds = (str(values.get(key)) for key in _KIND_KEYS)
    if any(values.get(key) for key in _STEP_KEYS) or any(map(_STEP_KIND.fullmatch, kinds)):
        return None
    if (inner := _find_inner_call(given)) is not None:
        return read_structured_call(FinalToolCall(inner)) or StructuredFinal(None, "", quote)
    statuses = {
        status for key in _STATUS_KEYS if (status := _read_status_value(key, values.get(key)))
    }
    if any(
        isinstance(each, str) and _GIVEN_UP.fullmatch(each.casefold()) for each in given.values()
    ):
        statuses.add("admits_failure")
    sentences = "\n".join(_find_json_sentences(given))
    if statuses:
        return StructuredFinal(
            statuses.pop() if len(statuses) == 1 else "partial", sentences or None, quote
        )
    if values.get("error"):
        return StructuredFinal("admits_failure", None, quote)
    answer = next((values[key] for key in _ANSWER_KEYS if key in values), None)
    if answer is not None and not isinstance(answer, dict | list):
        return StructuredFinal(None, str(answer), quote)
    if _CALL_KEYS & set(values):
        return None
    if any(map(str.isalpha, sentences)) and _SENTENCE.search(sentences):
        return StructuredFinal(None, sentences, quote, is_answer=False)
    return StructuredFinal(None, sentences or quote, quote, is_data=True) if given else None


def _is_call_list(text: str) -> bool:
    """Return whether a text is a JSON list of objects that each only hold an object: calls."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if not isinstance(values, list) or not all(isinstance(each, dict) for each in values):
        return False
    inner = [value for each in values for value in each.values()]
    return bool(inner) and all(
        isinstance(value, dict) or _parse_json_object(str(value)) is not None for value in inner
    )


def _find_inner_call(given: Mapping[str, object]) -> str | None:
    """Return the call that a JSON object holds in one of its members; None if there is none."""
    inner = (_write_call(value) for value in given.values() if isinstance(value, dict))
    return next((written for written in inner if written is not None), None)


def _write_call(given: Mapping[str, object]) -> str | None:
    """Write a call that is a JSON object as name(arguments); None for any other object."""
    name = next((given[key] for key in _CALL_NAME_KEYS if key in given), None)
    arguments = next((given[key] for key in _ARGUMENT_KEYS if key in given), None)
    if isinstance(name, str) and isinstance(arguments, dict):
        return f"{name}({json.dumps(arguments, ensure_ascii=False)})"
    return None


def _read_status_value(key: str, value: object) -> ClaimStatus | None:
    if key in _INVERTED:
        return None if value is None else "delivered" if value == 0 else "admits_failure"
    if isinstance(value, dict | list):
        return None
    return _STATUSES.get(re.sub(r"[\s-]+", "_", str(value).casefold().strip()))


def _read_broken_json(text: str) -> StructuredFinal | None:
    """Read cut or broken JSON: its status, else its sentences."""
    if _LOOSE_STEPS.search(text):
        return StructuredFinal(None, "", text[:200])
    statuses = {
        status
        for key, value in _LOOSE_STATUS.findall(text)
        if (status := _read_status_value(key, value))
    }
    if len(statuses) == 1:
        return StructuredFinal(statuses.pop(), None, text[:200])
    sentences = "\n".join(_find_broken_strings(text))
    return StructuredFinal(None, sentences, text[:200], is_answer=False) if sentences else None


def _find_broken_strings(text: str) -> Iterator[str]:
    """Yield the strings of more than one word in cut or broken JSON."""
    for part in split_clipped_parts(text):
        if not part.lstrip().startswith(("{", "[", '"', "}", "]")):
            part = f',"{part}'
        for match in _LOOSE.finditer(f'{part}",'):
            yield from _find_json_sentences(match[1].replace("\\n", "\n").replace('\\"', '"'))


def _find_json_sentences(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the strings of more than one word in a JSON value, each as a sentence, in order."""
    if isinstance(value, str) and len(value.split()) > 1:
        yield value if value.rstrip().endswith((".", "!", "?", ":")) else f"{value.rstrip()}."
    elif isinstance(value, dict | list) and depth < _DEPTH:
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _find_json_sentences(inner, depth + 1)


def _parse_members(text: str) -> dict[str, object]:
    """Return the members of a text that is only `key: value` lines or `key=value` words, if any."""
    for pattern, separator in ((_YAML_LINE, "\n"), (_LOGFMT_WORD, None)):
        parts = text.strip().split(separator)
        matches = [match for part in parts if (match := pattern.fullmatch(part)) is not None]
        if MIN_MEMBERS <= len(parts) == len(matches):
            return {match[1]: match[2].strip("\"'") for match in matches}
    return {}


def _make_marked_answer(text: str, quote: str) -> StructuredFinal:
    return StructuredFinal(None, text.strip(), quote.strip()[-200:])


def _parse_json_object(text: str) -> dict[str, object] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
