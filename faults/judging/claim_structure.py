"""Finals with a form: a call that submits or hands over, JSON with a status, a marked answer."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from faults.judging.final_turns import ToolTurn
from faults.judging.sentences import clip

type Status = Literal["delivered", "partial", "abstained", "asks", "admits_failure"]


@dataclass(frozen=True, slots=True)
class Structured:
    """What a final with a form says: a status, else a text whose words are to be read."""

    status: Status | None
    text: str | None
    quote: str


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
         "awaiting_input", "requires_input", "pending", "on_hold"),
        "asks",
    ),
}  # fmt: skip
_STATUS_KEYS = (
    "status", "state", "outcome", "success", "succeeded", "ok", "completed", "complete", "done",
    "task_completed", "task_status", "finished", "resolved", "passed", "exit_code", "returncode",
)  # fmt: skip
_TEXT_KEYS = (
    "answer", "final_answer", "finalanswer", "message", "text", "summary", "result", "output",
    "response", "report", "content", "final_output", "final_response", "value",
    "question", "reason",
)  # fmt: skip
_INVERTED = ("exit_code", "returncode")
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
_FENCED = re.compile(r"```(?:json)?\s*(\{.*?\})\s*```", re.DOTALL)
_MARKED = re.compile(
    r"(?im)^[\W_]*(?:the |my )?(?:final[ _](?:answer|result|output|response)|answer|ANTWORT|"
    r"réponse(?: finale)?|respuesta(?: final)?|resposta(?: final)?|risposta(?: finale)?|"
    r"endergebnis|答案|最终答案|最終回答|回答|答え)[\W_]*?(?::|：|=|\bis\b)[ \t*_`]*(.*)$"
)
_TAGGED = re.compile(
    r"(?is)(?:<(final_?answer|answer|result|solution)>(.*?)</\1>|\[answer\](.*?)(?:\[/answer\]|\Z)|"
    r"\\boxed\{(.*)\})"
)
_FINISHES = re.compile(
    r"(?ims)^[^\S\n]*(?:\w+[ \d]*:\s*)?(?:finish|submit|final_answer|answer|complete)\s*"
    r"[(\[]\s*(.*?)\s*[)\]]*\s*\Z"
)


def structured_call(turn: ToolTurn) -> Structured | None:
    """What a call says that submits, gives up, asks or hands over; None for any other."""
    found = _CALL.match(turn.call[:20_000])
    if found is None:
        return None
    name, inside = found[1], found[2]
    given = _object(inside if inside.lstrip().startswith("{") else "{" + inside + "}")
    if _HANDS_OVER.search(name):
        return Structured("abstained", None, turn.call[:200])
    for pattern, status in ((_REFUSES, "abstained"), (_GIVES_UP, "admits_failure")):
        if pattern.search(name):
            return Structured("abstained" if status == "abstained" else "admits_failure", None,
                              turn.call[:200])  # fmt: skip
    if _ASKS.search(name):
        return Structured("asks", None, turn.call[:200])
    if _SUBMITS.match(name):
        if given is None:
            return Structured(None if inside.strip() else "delivered", inside or None,
                              turn.call[:200])  # fmt: skip
        return structured_object(given, turn.call[:200]) or Structured(
            "delivered", None, turn.call[:200]
        )
    return None


def structured_text(text: str) -> Structured | None:
    """What a message says that is JSON, or marks its answer; None for free text."""
    text = clip(text)
    for candidate in (text.strip(), *_FENCED.findall(text)[-1:]):
        given = _object(candidate)
        if given is not None:
            return structured_object(given, candidate[:200])
    if tagged := list(_TAGGED.finditer(text)):
        inside = next(part for part in tagged[-1].groups()[1:] if part is not None)
        return _answer(inside, tagged[-1][0])
    finishes = _FINISHES.search(text)
    if finishes is not None:
        return _answer(finishes[1], finishes[0])
    marked = _MARKED.findall(text)
    return _answer(marked[-1], marked[-1]) if marked and marked[-1].strip() else None


def structured_object(given: Mapping[str, object], quote: str) -> Structured | None:
    """What a JSON object says by a status, else by an answer; None without either."""
    named = {key.casefold().replace("-", "_").replace(" ", "_"): key for key in given}
    said: list[Status] = []
    for key in _STATUS_KEYS:
        if key in named:
            value = given[named[key]]
            folded = str(value).casefold().strip().replace(" ", "_").replace("-", "_")
            status = _STATUSES.get(folded)
            if key in _INVERTED and isinstance(value, int):
                status = "delivered" if value == 0 else "admits_failure"
            if status is not None:
                said.append(status)
    text = next(
        (given[named[key]] for key in _TEXT_KEYS if key in named and given[named[key]]), None
    )
    if said:
        agreed = said[0] if len(set(said)) == 1 else "partial"
        return Structured(agreed, None, quote)
    if given.get(named.get("error", "")):
        return Structured("admits_failure", None, quote)
    if text is not None:
        return Structured(None, text if isinstance(text, str) else json.dumps(text), quote)
    return None


def _answer(text: str, quote: str) -> Structured:
    return Structured(None, text.strip(), quote.strip()[-200:])


def _object(text: str) -> dict[str, object] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
