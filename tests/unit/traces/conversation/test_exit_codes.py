"""Exit codes are learnt from several results of a tool, in whatever form it writes them."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from traces.conversation.derived_steps import is_error_text
from traces.conversation.exit_codes import learn_exit_codes

FORMS = {
    "Codex": "Chunk ID: a1\nWall time: 0.05 seconds\nProcess exited with code {}\nOutput:\n{}",
    "Copilot": "{1}\n<shellId: 3 completed with exit code {0}>",
    "OpenHands": "{1}\n[The command completed with exit code {0}.]\n[Current directory: /w]",
    "Gemini CLI": json.dumps({"output": "Output: x\nExit Code: CODE\nProcess Group PGID: 7"}),
    "qwen-code": "Command: ls\nOutput: {1}\nExit Code: {0}\nSignal: (none)",
    "field": json.dumps({"output": "x", "metadata": {"exit_code": "CODE", "seconds": 0.1}}),
    "list": json.dumps([{"type": "text", "text": "done, rc=CODE"}]),
    "unheard of": "{1}\n--- fin ({0}) ---",
}


def write(form: str, code: int, output: str) -> str:
    text = FORMS[form].replace('"CODE"', str(code)).replace("CODE", str(code))
    return text if text.startswith(('{"', "[")) else text.format(code, output)


@pytest.mark.parametrize("form", FORMS)
@given(
    codes=st.lists(st.sampled_from([0, 0, 0, 1, 2, 127]), min_size=3, max_size=9).filter(
        lambda codes: codes.count(0) * 2 > len(codes)
    ),
    outputs=st.lists(st.text("ab 1\n", max_size=20), min_size=9, max_size=9),
)
@example(codes=[0, 2, 0], outputs=["1", "2", "3"] * 3)
def test_the_form_of_a_tool_is_learnt(form: str, codes: list[int], outputs: list[str]) -> None:
    results = [write(form, code, output) for code, output in zip(codes, outputs, strict=False)]
    assert learn_exit_codes(results) == codes


@pytest.mark.parametrize(
    "results",
    [
        ["exit 0", "exit 2"],  # too few
        ["4", "1", "6"],
        ['{"value": 4}', '{"value": 0}', '{"value": 6}'],
        ["12 passed", "9 passed", "0 passed"],
        ["took 0.0 s", "took 0.0 s", "took 0.3 s"],
        ["one", "two", "three"],
        ["lines 0 to 400", "lines 0 to 900", "lines 0 to 70000", "nothing"],
    ],
)
def test_what_is_no_exit_code_is_unknown(results: list[str]) -> None:
    assert learn_exit_codes(results) == [None] * len(results)


def test_places_that_contradict_each_other_prove_nothing() -> None:
    results = ["exit 0\nskipped 2", "exit 0\nskipped 0", "exit 0\nskipped 0"]
    assert learn_exit_codes(results) == [None, None, None]


def test_a_result_without_the_form_stays_unknown() -> None:
    assert learn_exit_codes(["exit 0", "exit 0", "timed out", "exit 3", "exit 0"]) == [
        0,
        0,
        None,
        3,
        0,
    ]


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        ('{"output": "Exit Code: 2"}', None),
        ("[1, 2]", None),
        ('"text"', None),
        ("4217", None),
        ('{"error": null}', False),
        ('{"error": "no such file"}', True),
        ('[{"success": false, "error": "Command exited with code 2"}]', True),
        ('[{"query": "ls", "result": "a"}]', None),
        ('{"returncode": 0, "output": ""}', False),
        ('{"returncode": 2, "output": ""}', True),
        ("Error: no", True),
        ("fine", None),
    ],
)
def test_only_what_a_text_declares_is_known(text: str, flag: bool | None) -> None:
    assert is_error_text(text) is flag
