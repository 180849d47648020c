"""Describe the end of a run by features, as input of the trained reader.

Four groups, each a binary fact, named by its prefix: `fact:` how the run and its last message end;
`kind:` the kinds of clauses that the cues of all languages give (see `clause_kinds`); `close:` and
`last:` one or two neighbouring words of the last two sentences, and of the last; `tool:` words of
the last call's name, and one or two neighbouring words of its result; `end:` words by which the
recorder names the end.
"""

import json
import re
from collections.abc import Iterator, Sequence

from faults.judging.claims.clause_kinds import ClassifiedClause, classify_clauses
from faults.judging.claims.final_claim import (
    has_end_reason,
    is_error_result,
    is_repeated_message,
)
from faults.judging.claims.final_turns import FinalToolCall, FinalTurns
from faults.judging.claims.sentences import fold_text, strip_code_blocks, strip_program_text
from faults.judging.claims.structured_claim import (
    StructuredFinal,
    has_final_action,
    has_submit_command,
    has_tagged_action,
    read_structured_call,
    read_structured_text,
)

LENGTHS = (40, 150, 500, 1500)
"""Characters above which a message counts as longer."""
MAX_CLOSE_CHARS = 400
MAX_LAST_CHARS = 200
MAX_RESULT_CHARS = 300
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|\d+|[?!:]|```")
_NAME_PART = re.compile(r"[^a-z]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_CALL_NAME = re.compile(r"\W*([\w.:-]{1,60})")
_SENTENCE_END = re.compile(r"(?<=[.!?。])\s+|\n+")
_VALUE = re.compile(r"\d[\d.,]*\d|[A-Z0-9]{4,}")
_FENCED_JSON = re.compile(r"(?s)```(?:json)?\s*(.*?)```")
_OPEN_LABEL = re.compile(r"\W*([A-Za-z_]+ ?\d*:|<\w+>|```|\[)")
_LINE_LABEL = re.compile(r"(?m)^\s*([A-Z][\w ]{0,20}?)\s*\d*\s*:")
_END_TAG = re.compile(r"</?\w+>\s*$")
_END_CALL = re.compile(r"\w\([^\n]*\)\s*$")
_LIST_LINE = re.compile(r"(?m)^\s*(?:[-*•]|\d+[.)])\s")
_REASONING = re.compile(
    r"(?i)<think(?:ing)?>(?!.*</think)|^\W*(?:okay|ok|alright|hmm),? (?:so|let)\b"
)
_MARKS = ("is_question", "has_doubt", "is_unable", "is_ruled", "offers_handover")
_SILENT = ("bye", "offer")


def extract_end_features(final: FinalTurns) -> frozenset[str]:
    """Return the features of the end of a run."""
    messages = tuple(map(strip_program_text, final.messages[-2:])) or ("",)
    last, previous = messages[-1], messages[-2] if len(messages) > 1 else None
    written = final.messages[-1] if final.messages else ""
    values = _read_json_text(last)
    structured = read_structured_text(last)
    return frozenset(
        (
            *_describe_end(final, messages, written),
            *_describe_form(last, is_json=values is not None),
            *_describe_step_form(last, previous),
            *_describe_structure(structured, "text"),
            *_describe_words(last if values is None else values),
            *_describe_clauses(_find_statement(last, values, structured), "kind"),
            *_describe_clauses(previous or "", "kind:previous", edges_only=True),
            *(_describe_call(final.tools[-1], last, written) if final.tools else ("fact:no call",)),
        )
    )


def _find_statement(last: str, values: str | None, structured: StructuredFinal | None) -> str:
    if structured is not None and structured.text:
        return structured.text
    return last if values is None else values


def _name_facts(**facts: bool) -> Iterator[str]:
    return (f"fact:{name.replace('_', ' ')}" for name, holds in facts.items() if holds)


def _describe_end(final: FinalTurns, messages: tuple[str, ...], written: str) -> Iterator[str]:
    yield from _name_facts(
        broken=has_end_reason(final, "broken"),
        submitted=has_end_reason(final, "submitted"),
        transferred=has_end_reason(final, "transferred"),
        open_call=final.open_call,
        repeats=is_repeated_message(messages),
        submit_command=has_submit_command(written),
    )
    for word in re.findall(r"[a-z]+", (final.ended or "").casefold()):
        yield f"end:{word}"


def _describe_form(last: str, *, is_json: bool) -> Iterator[str]:
    text = last.rstrip()
    yield from _name_facts(
        empty=not text,
        ends_with_question=text.rstrip("*_\"') \n}]").endswith("?"),
        question_near_end="?" in text[-250:],
        question="?" in text,
        ends_with_code=text.endswith("```"),
        code="```" in text,
        json=is_json,
        ends_with_tag=_END_TAG.search(text[-100:]) is not None,
        ends_with_call=_END_CALL.search(text[-300:]) is not None,
        ends_with_colon=text.endswith(":"),
        ends_with_dots=text.endswith(("...", "…")),
        action=has_final_action(last),
        tagged_action=has_tagged_action(last),
        reasoning=_REASONING.search(text[:200]) is not None,
        list=len(_LIST_LINE.findall(text)) > 1,
        markup="**" in text or "##" in text,
    )
    yield from (f"fact:longer than {limit}" for limit in LENGTHS if len(text) > limit)


def _describe_step_form(last: str, previous: str | None) -> Iterator[str]:
    """Compare the form of the last message with the one before it: a step looks like a step."""
    if previous is None:
        return
    own, before = _outline_message(last), _outline_message(previous)
    yield from _name_facts(
        form_of_previous=own == before and own != _PLAIN and bool(last.strip()),
        plain_form=own == _PLAIN,
        other_form_than_previous=own != before and before != _PLAIN,
    )


_PLAIN = ("", (), "")


def _outline_message(text: str) -> tuple[str, tuple[str, ...], str]:
    """Return how a message opens, its first and last line labels (or its keys), and its end."""
    text = text.strip()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return "json", tuple(sorted(value)), ""
    opened = _OPEN_LABEL.match(text)
    labels = [label.casefold() for label in _LINE_LABEL.findall(text)]
    ends = (
        "code" if text.endswith("```") else "tag" if _END_TAG.search(text[-100:])
        else "call" if _END_CALL.search(text[-300:]) or text.endswith("]") else ""
    )  # fmt: skip
    opening = re.sub(r"\d+", "0", opened[1].casefold()) if opened else ""
    return opening, tuple(dict.fromkeys((*labels[:1], *labels[-1:]))), ends


def _describe_structure(found: StructuredFinal | None, where: str) -> Iterator[str]:
    if found is None:
        return
    yield f"fact:structured {where}"
    yield f"fact:status in {where} {found.status}"
    if found.hands_over:
        yield f"fact:{where} hands over"
    if found.is_answer and not found.is_data:
        yield f"fact:{where} is marked"


def _describe_words(text: str) -> Iterator[str]:
    plain = _fold_numbers(strip_code_blocks(text))
    sentences = [part for part in _SENTENCE_END.split(plain) if any(map(str.isalnum, part))]
    yield from _pair_words(" ".join(sentences[-2:])[-MAX_CLOSE_CHARS:], "close")
    yield from _pair_words(" ".join(sentences[-1:])[-MAX_LAST_CHARS:], "last")


def _describe_call(tool: FinalToolCall, last: str, written: str) -> Iterator[str]:
    result = tool.result or ""
    if (name := _CALL_NAME.match(tool.call)) is not None:
        parts = _NAME_PART.split(_CAMEL.sub(" ", name[1]).casefold())
        yield from (f"tool:{part}" for part in parts if part)
    yield from _pair_words(_fold_numbers(result[:MAX_RESULT_CHARS]), "tool:result")
    submission = read_structured_call(tool)
    yield from _describe_structure(submission, "call")
    if submission is not None and submission.text:
        yield from _describe_words(submission.text)
        yield from _describe_clauses(submission.text, "kind")
    own, given = set(_VALUE.findall(last)), set(_VALUE.findall(result))
    yield from _name_facts(
        failed_call=is_error_result(tool),
        empty_result=not result.strip(),
        call_in_message=bool(written.strip())
        and (tool.call.strip()[:60] in written or written.strip()[:60] in tool.call),
        value_of_result=bool(own & given),
        values_of_result=len(own & given) > 2,
        no_value=not own,
    )


def _describe_clauses(text: str, prefix: str, *, edges_only: bool = False) -> Iterator[str]:
    clauses = classify_clauses(text)
    told = [clause for clause in clauses if clause.kind not in _SILENT]
    yield from (f"{prefix}:first {clause.kind}" for clause in told[:1])
    yield from (f"{prefix}:last {clause.kind}" for clause in told[-1:])
    if edges_only:
        return
    yield from (f"{prefix}:end {clause.kind}" for clause in clauses[-1:])
    if any(clause.has_doubt for clause in (*told[:1], *told[-1:])):
        yield f"{prefix}:doubt at the edges"
    yield from _mark_clauses(clauses, prefix)


def _mark_clauses(clauses: Sequence[ClassifiedClause], prefix: str) -> Iterator[str]:
    for clause in clauses:
        yield f"{prefix}:{clause.kind}"
        yield from (f"{prefix}:{mark}" for mark in _MARKS if getattr(clause, mark))


def _fold_numbers(text: str) -> str:
    return re.sub(r"\d+", "0", fold_text(text))


def _pair_words(text: str, prefix: str) -> Iterator[str]:
    words = _WORD.findall(text)
    yield from (f"{prefix}:{word}" for word in words)
    yield from (f"{prefix}:{one} {two}" for one, two in zip(words, words[1:], strict=False))


def _read_json_text(text: str) -> str | None:
    """Return the members of a message that is JSON as lines; None for any other."""
    fenced = _FENCED_JSON.fullmatch(text.strip())
    inside = fenced[1].strip() if fenced else text.strip()
    if not inside.startswith(("{", "[")):
        return None
    try:
        return "\n".join(_list_members(json.loads(inside), ""))
    except (ValueError, RecursionError):
        return None


def _list_members(value: object, key: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _list_members(inner, str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _list_members(inner, key)
    else:
        yield f"{key.replace('_', ' ')}: {value}"
