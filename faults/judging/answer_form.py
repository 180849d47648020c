"""Whether a run ends in the form in which its clean twins end, values masked.

What an agent always says (an apology, a warning, a greeting) stands in its twins too, and says
nothing of a fault. What differs is what is left to be read.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from faults.after import After
from faults.atoms import leaves, mask_values
from faults.judging.closing import last_said
from faults.judging.sentences import clauses
from faults.side import side
from traces.story import Story, ToolUse

type Form = Literal["same", "added", "other"]
"""As a clean twin ends; with all that a twin says and more; in another way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One thing that a run says at its end."""

    text: str
    call: ToolUse | None = None
    """The call in whose arguments it stands; None for the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormComparison:
    """How a run ends beside its twins."""

    form: Form | None
    """None without twins."""
    new: tuple[Statement, ...] = ()
    """What no twin says."""
    silent: bool = False
    """Whether nothing is said at all."""
    twins_silent: bool = False
    kept: str = ""
    """A statement that the run and a twin share, in the words of the run."""

    @property
    def new_text(self) -> str:
        """What the answer says that none of the twins' does."""
        return "\n".join(each.text for each in self.new if each.call is None)


def compare_form(own: After, twins: Sequence[After], hidden: tuple[str, ...]) -> FormComparison:
    """The end of a run against those of its twins; `hidden` are texts that count as values."""
    said = _statements(own, hidden)
    others = [_statements(twin, hidden) for twin in twins]
    silent = not any(each.text.strip() for each in said.values())
    usual = {form for other in others for form in other}
    return FormComparison(
        form=_form(said, others) if others else None,
        new=tuple(each for form, each in said.items() if form not in usual),
        silent=silent,
        twins_silent=bool(others) and not any(others),
        kept=next((each.text for form, each in said.items() if form in usual), ""),
    )


def _form(said: Mapping[str, Statement], others: Iterable[Mapping[str, Statement]]) -> Form:
    found: Form = "other"
    for other in others:
        if said.keys() == other.keys():
            return "same"
        if other and said.keys() > other.keys():
            found = "added"
    return found


def _statements(run: After, hidden: tuple[str, ...]) -> dict[str, Statement]:
    """What a run says at its end, in its answer and in the calls that do something."""
    found = answer_forms(run.story, hidden)
    for use in run.calls:
        if side(use.tool) != "read":
            found |= _in_call(use, hidden)
    return found


def answer_forms(story: Story, hidden: tuple[str, ...] = ()) -> dict[str, Statement]:
    """The statements of the answer, by their masked form: sentences, or the members of JSON."""
    found: dict[str, Statement] = {}
    for turn in last_said(story):
        members = leaves(turn.message)
        if members:
            for leaf in members:
                value = "#" if leaf.kind == "number" else mask_values(leaf.said, hidden)
                found[f"{leaf.path}={value}"] = Statement(text=turn.message)
        else:
            for clause in clauses(turn.message):
                if form := mask_values(clause.text, hidden):
                    found[form] = Statement(text=clause.text)
    return found


def _in_call(use: ToolUse, hidden: tuple[str, ...]) -> dict[str, Statement]:
    """The texts among the arguments of a call that are more than values."""
    found = {}
    for leaf in leaves(use.arguments):
        if leaf.kind != "text":
            continue
        for clause in clauses(leaf.said):
            form = mask_values(clause.text, hidden)
            if any(letter.isalpha() for letter in form):
                found[f"{use.tool}.{leaf.path}={form}"] = Statement(text=clause.text, call=use)
    return found


def is_json(text: str) -> bool:
    """Whether a message is one JSON object or list."""
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False
