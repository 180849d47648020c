"""Finals with a form: a call that submits or hands over, JSON with a status, a marked answer."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from faults.judging.final_turns import ToolTurn
from faults.judging.sentences import clip, parts

type Status = Literal["delivered", "partial", "abstained", "asks", "admits_failure"]


@dataclass(frozen=True, slots=True)
class Structured:
    """What a final with a form says: a status, else a text whose words are to be read."""

    status: Status | None
    text: str | None
    quote: str
    is_answer: bool = True
    """Whether that text is marked as the answer: then a plain statement is one."""
    hands_over: bool = False
    """Whether it is a call that hands over to somebody else."""


_STATUSES: Mapping[str, Status] = {
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
         "human_required", "not_allowed", "forbidden", "skipped", "cancelled", "withheld"),
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
_INVERTED = ("exit_code", "returncode")
_CALL_KEYS = frozenset(("arguments", "tool", "function", "tool_call", "tool_calls", "action"))
_SENTENCE = re.compile(r"(?:\S+\s+){3}\S|[\u3040-\u30ff\u4e00-\u9fff]{4}")
"""Data has names and values in it, a message has sentences."""
_DEPTH = 20
"""Levels of JSON that are read."""
_NAME = r"[\w.:/-]*?"
_SUBMITS = re.compile(
    rf"(?i)^{_NAME}(?:^|[_.:/-]|\b)(?:submit|finish|finished|final|final_answer|final_result|"
    r"attempt_completion|complete|complete_task|task_complete|task_completed|task_done|"
    r"mark_done|mark_complete|done|end_task|give_answer|answer|respond|submit_\w+|finish_\w+|"
    r"report_result|report_status|return_answer|send_final_\w+)$"
)
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
_LOOSE_STEPS = re.compile(rf'"(?:{"|".join(_STEP_KEYS)})"\s*:\s*\[\s*[^\]\s]')
_FENCED = re.compile(r"```(?:json)?\s*(\{.*?\})\s*```", re.DOTALL)
_MARKED = re.compile(
    r"(?im)^(?:[^\w\n]|_)*+(?:the |my )?"
    r"(?:final[ _](?:answer|result|output|response)|answer|antwort|"
    r"réponse(?: finale)?|respuesta(?: final)?|resposta(?: final)?|risposta(?: finale)?|"
    r"endergebnis|答案|最终答案|最終回答|回答|答え)(?:[^\w\n]|_)*?(?::|：|=|\bis\b)[ \t*_`]*(.*)$"
)
_TAGGED = re.compile(
    r"(?is)(?:<(final_?answer|answer|result|solution)>(.*?)</\1>|\[answer\](.*?)(?:\[/answer\]|\Z)|"
    r"\\boxed\{(.*)\})"
)
_FINISHES = re.compile(
    r"(?ims)^[^\S\n]*(?:\w+[ \d]*:\s*)?(?:finish|submit|final_answer|answer|complete|stop)\s*"
    r"[(\[]\s*(.*?)\s*[)\]]*\s*\Z"
)


def structured_call(turn: ToolTurn) -> Structured | None:
    """What a call says that submits, gives up, asks or hands over; None for any other."""
    call, quote = turn.call[:20_000], turn.call[:200]
    if _SUBMITS_BY_COMMAND.search(call[:2000]):
        return Structured("delivered", None, quote)
    found = _CALL.match(call)
    if found is None:
        return None
    name, inside = found[1], found[2].strip()
    for pattern, status in _BY_NAME:
        if pattern.search(name):
            return Structured(status, None, quote, hands_over=pattern is _HANDS_OVER)
    if not _SUBMITS.match(name):
        return None
    given = _object(inside if inside.startswith("{") else "{" + inside + "}")
    if given is not None:
        return structured_object(given, quote) or Structured("delivered", None, quote)
    return Structured(None, inside, quote) if inside else Structured("delivered", None, quote)


_BY_NAME: tuple[tuple[re.Pattern[str], Status], ...] = (
    (_HANDS_OVER, "abstained"),
    (_REFUSES, "abstained"),
    (_GIVES_UP, "admits_failure"),
    (_ASKS, "asks"),
)


def submits_by_command(text: str) -> bool:
    """Whether the last code block of a message runs a command that submits."""
    blocks = _BLOCK.findall(clip(text))
    return bool(blocks and _SUBMITS_BY_COMMAND.search(blocks[-1]))


def is_action(text: str) -> bool:
    """Whether a message ends in a call that is written as text, or in code that is to be run."""
    text = clip(text).rstrip()
    last = text.rpartition("\n\n")[2]
    return bool(_ACTION.search(last)) or text.endswith("```") and bool(_BLOCK.search(text))


def structured_text(text: str) -> Structured | None:
    """What a message says that is JSON, or marks its answer; None for free text."""
    text = clip(text)
    for candidate in (text.strip(), *_FENCED.findall(text)[-1:]):
        given = _object(candidate)
        if given is not None:
            found = structured_object(given, candidate[:200])
            return found or Structured(None, "", candidate[:200])
    if text.lstrip().startswith("{"):
        return _loose(text)
    if tagged := list(_TAGGED.finditer(text)):
        inside = next(part for part in tagged[-1].groups()[1:] if part is not None)
        return _answer(inside, tagged[-1][0])
    if finishes := _FINISHES.search(text):
        return _answer(finishes[1], finishes[0])
    if marked := list(_MARKED.finditer(text)):
        answer = marked[-1][1].strip() or text[marked[-1].end() :].strip()
        return _answer(answer, marked[-1][0] if marked[-1][1].strip() else answer)
    return None


def structured_object(given: Mapping[str, object], quote: str) -> Structured | None:
    """What a JSON object says by a status, else by its answer, else by all its words."""
    named = {key.casefold().replace("-", "_").replace(" ", "_"): given[key] for key in given}
    if any(named.get(key) for key in _STEP_KEYS):
        return None
    said = {status for key in _STATUS_KEYS if (status := _status(key, named.get(key)))}
    if said:
        return Structured(said.pop() if len(said) == 1 else "partial", None, quote)
    if named.get("error"):
        return Structured("admits_failure", None, quote)
    answer = next((named[key] for key in _ANSWER_KEYS if key in named), None)
    if answer is not None and not isinstance(answer, dict | list):
        return Structured(None, str(answer), quote)
    if _CALL_KEYS & set(named):
        return None
    told = "\n".join(_strings(given))
    if any(map(str.isalpha, told)) and _SENTENCE.search(told):
        return Structured(None, told, quote, is_answer=False)
    return Structured(None, told or quote, quote) if given else None


def _status(key: str, value: object) -> Status | None:
    if key in _INVERTED:
        return None if value is None else "delivered" if value == 0 else "admits_failure"
    if isinstance(value, dict | list):
        return None
    return _STATUSES.get(re.sub(r"[\s-]+", "_", str(value).casefold().strip()))


def _loose(text: str) -> Structured | None:
    """What JSON says that is cut or broken: its status, else its words."""
    if _LOOSE_STEPS.search(text):
        return Structured(None, "", text[:200])
    said = {status for key, value in _LOOSE_STATUS.findall(text) if (status := _status(key, value))}
    if len(said) == 1:
        return Structured(said.pop(), None, text[:200])
    told = "\n".join(_loose_strings(text))
    return Structured(None, told, text[:200], is_answer=False) if told else None


def _loose_strings(text: str) -> Iterator[str]:
    """The texts of more than one word in JSON that is cut or broken."""
    for part in parts(text):
        if not part.lstrip().startswith(("{", "[", '"', "}", "]")):
            part = f',"{part}'
        for found in _LOOSE.finditer(f'{part}",'):
            yield from _strings(found[1].replace("\\n", "\n").replace('\\"', '"'))


def _strings(value: object, depth: int = 0) -> Iterator[str]:
    """The texts of more than one word in a JSON value, a sentence each, in their order."""
    if isinstance(value, str) and len(value.split()) > 1:
        yield value if value.rstrip().endswith((".", "!", "?", ":")) else f"{value.rstrip()}."
    elif isinstance(value, dict | list) and depth < _DEPTH:
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner, depth + 1)


def _answer(text: str, quote: str) -> Structured:
    return Structured(None, text.strip(), quote.strip()[-200:])


def _object(text: str) -> dict[str, object] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
