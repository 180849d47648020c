"""Edits of the prompt by the form: the smallest ones that make the change."""

import json

from hypothesis import given
from hypothesis import strategies as st

from replay.prompt_edit import apply_prompt_edits
from stumble.ui.values.prompt_fields import (
    LONGEST_PROMPTS,
    list_prompt_edits,
    list_prompt_fields,
    shorten_edit,
)
from traces.model import Exchange, Request

WORDS = st.text(alphabet="ab \n", max_size=30)
RULES = "You are helpful. Answer briefly. Be exact. Answer briefly. Stop when done."


def asked(*messages: tuple[str, str]) -> Exchange:
    given = {"model": "m", "messages": [{"role": role, "content": text} for role, text in messages]}
    body = json.dumps(given).encode()
    url = "https://api.example.org/v1/chat/completions"
    return Exchange(seq=0, request=Request(method="POST", url=url, body=body))


@given(text=WORDS.filter(bool), value=WORDS, other=WORDS)
def test_an_edit_makes_the_change_and_no_other(text: str, value: str, other: str) -> None:
    edit = shorten_edit(text, value, (text, other))
    assert apply_prompt_edits(text, (edit,)) == value
    if edit.old != text:
        assert apply_prompt_edits(other, (edit,)) == other


def test_an_edit_is_short_and_of_whole_words() -> None:
    value = RULES.replace("exact", "very careful")
    edit = shorten_edit(RULES, value, (RULES,))
    assert (edit.old, edit.new) == ("exact.", "very careful.")
    last = shorten_edit(RULES, RULES.replace("briefly. Stop", "at length. Stop"), (RULES,))
    assert RULES.count(last.old) == 1
    assert len(last.old) < len(RULES)


def test_a_form_changes_what_was_edited_alone() -> None:
    exchange = asked(("system", "One\ntwo"), ("user", "Do it"), ("tool", "a result"))
    given = {"prompt.0": "One\r\ntwo", "prompt.1": "Do it twice"}
    fields = tuple(list_prompt_fields(exchange, given))
    assert [(each.role, each.is_edited) for each in fields] == [("system", False), ("user", True)]
    [edit] = list_prompt_edits(fields)
    assert apply_prompt_edits("Do it", (edit,)) == "Do it twice"
    assert list_prompt_edits(list_prompt_fields(exchange, {})) == ()


def test_of_long_prompts_the_first_and_the_last_are_offered() -> None:
    long = "x" * (LONGEST_PROMPTS // 2 - 3)
    texts = [("system", long), ("user", "begin"), ("user", f"{long}y"), ("user", "last")]
    fields = list_prompt_fields(asked(*texts), {})
    assert [each.text[-5:] for each in fields] == ["xxxxx", "begin", "last"]
