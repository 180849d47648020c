"""The texts of the prompt at one place of a run, for an edit by hand."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os.path import commonprefix

from msgspec import Struct

from replay.prompt_edit import PromptEdit, find_prompt_texts
from traces.model import Exchange

LONGEST_PROMPTS = 12_000
"""Characters of all texts that the form offers; longer ones are edited by options."""
CONTEXT_WIDTHS = (0, 12, 40, 120, 400)
"""Characters around a change that are tried until they name one place."""


class PromptField(Struct, frozen=True, kw_only=True):
    """A text of the prompt, and the text that the form has for it."""

    name: str
    role: str
    text: str
    value: str

    @property
    def is_edited(self) -> bool:
        """Whether the form changes it."""
        return self.value != self.text


def list_prompt_fields(
    exchange: Exchange | None, given: Mapping[str, str]
) -> Iterator[PromptField]:
    """Yield a field for each text of a model request, the first and the last of too many."""
    texts = find_prompt_texts(exchange.request) if exchange else ()
    room, offered = LONGEST_PROMPTS, set[int]()
    for at in sorted(range(len(texts)), key=lambda at: (at > 1, -at if at > 1 else at)):
        if len(texts[at].text) <= room and texts[at].text.strip():
            room -= len(texts[at].text)
            offered.add(at)
    for at in sorted(offered):
        name, text = f"prompt.{at}", texts[at].text
        value = given.get(name, text).replace("\r\n", "\n")
        same = value == text.replace("\r\n", "\n").removeprefix("\n")  # as browsers read a field
        yield PromptField(name=name, role=texts[at].role, text=text, value=text if same else value)


def list_prompt_edits(fields: Iterable[PromptField]) -> tuple[PromptEdit, ...]:
    """Return the smallest edits that make the changes of the form."""
    fields = tuple(fields)
    texts = tuple(dict.fromkeys(each.text for each in fields))
    return tuple(shorten_edit(each.text, each.value, texts) for each in fields if each.is_edited)


def shorten_edit(text: str, value: str, texts: Sequence[str]) -> PromptEdit:
    """Return an edit that makes `value` of `text`, with as little of it as names the place."""
    first = len(commonprefix([text, value]))
    last = len(commonprefix([text[first:][::-1], value[first:][::-1]]))
    for width in CONTEXT_WIDTHS:
        start = _find_word_start(text, max(0, first - width))
        end = _find_word_end(text, min(len(text), len(text) - last + width))
        old, new = text[start:end], value[start : len(value) - (len(text) - end)]
        if old and sum(each.count(old) for each in texts) == 1:
            return PromptEdit(old=old, new=new)
    return PromptEdit(old=text, new=value)


def _find_word_start(text: str, at: int) -> int:
    while at and not text[at - 1].isspace():
        at -= 1
    return at


def _find_word_end(text: str, at: int) -> int:
    while at < len(text) and not text[at].isspace():
        at += 1
    return at
