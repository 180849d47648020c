"""Compare the final form of a run with that of its clean twins, values masked.

Habits of an agent (an apology, a warning, a greeting) occur in its twins too, and are no sign of a
fault. Only the difference is read further.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from faults.judging.claims.closing_turns import find_last_turns
from faults.judging.claims.sentences import split_clauses
from faults.judging.post_injection import RunContinuation
from faults.judging.value_tokens import find_json_leaves, mask_values
from faults.targeting.read_or_write import classify_tool_side
from traces.conversation.derived_steps import DerivedSteps, ToolUse

type EndForm = Literal["same", "added", "other"]
"""As a clean twin ends; with all statements of a twin and more; in another way."""


class FinalStatement(Struct, frozen=True, kw_only=True):
    """One statement at the end of a run."""

    text: str
    call: ToolUse | None = None
    """The call whose arguments contain it; None for the answer."""


class FormComparison(Struct, frozen=True, kw_only=True):
    """The end of a run compared with its twins."""

    form: EndForm | None
    """None without twins."""
    new: tuple[FinalStatement, ...] = ()
    """The statements that no twin makes."""
    silent: bool = False
    """Whether the run ends without any statement."""
    twins_silent: bool = False
    kept: str = ""
    """A statement that the run and a twin share, in the words of the run."""

    @property
    def new_text(self) -> str:
        """The statements of the answer that no twin's answer has."""
        return "\n".join(each.text for each in self.new if each.call is None)


def compare_form(
    own: RunContinuation, twins: Sequence[RunContinuation], hidden: tuple[str, ...]
) -> FormComparison:
    """Compare the end of a run with its twins; `hidden` are texts that count as values."""
    statements = _collect_statements(own, hidden)
    others = [_collect_statements(twin, hidden) for twin in twins]
    silent = not any(each.text.strip() for each in statements.values())
    usual = {form for other in others for form in other}
    return FormComparison(
        form=_classify_end_form(statements, others) if others else None,
        new=tuple(each for form, each in statements.items() if form not in usual),
        silent=silent,
        twins_silent=bool(others) and not any(others),
        kept=next((each.text for form, each in statements.items() if form in usual), ""),
    )


def _classify_end_form(
    said: Mapping[str, FinalStatement], others: Iterable[Mapping[str, FinalStatement]]
) -> EndForm:
    form: EndForm = "other"
    for other in others:
        if said.keys() == other.keys():
            return "same"
        if other and said.keys() > other.keys():
            form = "added"
    return form


def _collect_statements(run: RunContinuation, hidden: tuple[str, ...]) -> dict[str, FinalStatement]:
    """Return the statements at the end of a run, in its answer and its non-reading calls."""
    statements = find_answer_statements(run.story, hidden)
    for use in run.calls:
        if classify_tool_side(use.tool) != "read":
            statements |= _find_call_statements(use, hidden)
    return statements


def find_answer_statements(
    derived_steps: DerivedSteps, hidden: tuple[str, ...] = ()
) -> dict[str, FinalStatement]:
    """Return the answer's statements by masked form: sentences, or JSON members."""
    statements: dict[str, FinalStatement] = {}
    for turn in find_last_turns(derived_steps):
        members = find_json_leaves(turn.message)
        if members:
            for leaf in members:
                value = "#" if leaf.kind == "number" else mask_values(leaf.value, hidden)
                statements[f"{leaf.path}={value}"] = FinalStatement(text=turn.message)
        else:
            for clause in split_clauses(turn.message):
                if form := mask_values(clause.text, hidden):
                    statements[form] = FinalStatement(text=clause.text)
    return statements


def _find_call_statements(use: ToolUse, hidden: tuple[str, ...]) -> dict[str, FinalStatement]:
    """Return the texts in a call's arguments that are more than values."""
    statements = {}
    for leaf in find_json_leaves(use.arguments):
        if leaf.kind != "text":
            continue
        for clause in split_clauses(leaf.value):
            form = mask_values(clause.text, hidden)
            if any(letter.isalpha() for letter in form):
                statements[f"{use.tool}.{leaf.path}={form}"] = FinalStatement(
                    text=clause.text, call=use
                )
    return statements


def is_json_message(text: str) -> bool:
    """Return whether a message is one JSON object or list."""
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False
