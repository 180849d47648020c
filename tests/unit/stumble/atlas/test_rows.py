"""Rows of the atlas: what is kept of a run, and what is derived from its texts."""

from copy import replace

import pyarrow as pa
import pytest

from stumble.atlas.error_class import COMMAND_FAILED, ERROR_CLASSES, classify_error
from stumble.atlas.model_names import normalise_model_name
from stumble.atlas.recipe import Recipe, RunTotal, RunTotals, find_differences
from stumble.atlas.rows import PublishedCall, PublishedRun, sum_runs, to_tables


def call(
    tool: str, arguments: str | None, *, error: bool | None, result: str = ""
) -> PublishedCall:
    return PublishedCall(step=1, tool=tool, arguments=arguments, result=result, is_error=error)


def run(*calls: PublishedCall, run_id: str = "r", model: str | None = "m") -> PublishedRun:
    return PublishedRun(
        run_id=run_id, agent="a", model=model, suite="s", task="t", calls=tuple(calls)
    )


def call_table(*calls: PublishedCall) -> pa.Table:
    _, table = to_tables([run(*calls)], "source")
    return table


def test_no_text_of_a_run_is_kept() -> None:
    runs, calls = to_tables(
        [run(call("get", "SECRET ARGUMENT", error=True, result="SECRET timed out"))], "source"
    )
    for table in (runs, calls):
        assert "SECRET" not in str(table.to_pylist())
    assert calls["error_class"].to_pylist() == ["hang"]


def test_recovery_is_the_number_of_calls_until_one_works() -> None:
    table = call_table(
        call("a", "1", error=True),
        call("a", "1", error=True),
        call("a", "2", error=False),
        call("a", "2", error=True),
    )
    assert table["recovered_within"].to_pylist() == [2, 1, None, None]


def test_a_call_that_says_nothing_of_itself_is_no_recovery() -> None:
    table = call_table(call("a", "1", error=True), call("a", "2", error=None))
    assert table["recovered_within"].to_pylist() == [None, None]
    assert table["error_class"].to_pylist() == ["tool_error", None]


def test_a_repeat_has_the_same_tool_and_arguments_and_is_unknown_without_them() -> None:
    table = call_table(
        call("a", "1", error=False),
        call("a", "1", error=False),
        call("b", "1", error=False),
        call("b", None, error=False),
    )
    assert table["same_as_previous"].to_pylist() == [False, True, False, None]


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("<returncode>1</returncode>\n<output>\nplugins: timeout-2.3.1\n1 failed", COMMAND_FAILED),
        ('{"returncode": 2, "output": "503 Service Unavailable"}', COMMAND_FAILED),
        ("The last command <command>pytest</command> timed out and has been killed", "hang"),
        ("<exception>Command 'x' timed out after 30 seconds</exception>", "hang"),
        ("<returncode>-9</returncode>\n<output>Killed: timed out</output>", "hang"),
        ("Error: it printed <returncode>1</returncode>", "tool_error"),
    ],
)
def test_a_command_that_ended_is_no_failure_of_its_shell(result: str, expected: str) -> None:
    assert classify_error(result) == expected


def test_a_trial_that_comes_twice_is_an_error_under_any_id() -> None:
    one, copy = replace(run(run_id="r"), trial=1), replace(run(run_id="copy/r"), trial=1)
    with pytest.raises(ValueError, match="source: run copy/r comes twice"):
        to_tables([one, copy], "source")
    others = [replace(copy, trial=2), replace(copy, run_id="n", model="n")]
    assert to_tables([one, *others], "source")[0].num_rows == 3


def test_a_total_that_the_source_states_otherwise_is_named() -> None:
    runs = [run(run_id="a"), replace(run(run_id="b"), passed=True), run(run_id="c", model="n")]
    found = sum_runs(runs)
    assert found == {("a", "m"): RunTotal(2, 1), ("a", "n"): RunTotal(1, 0)}
    stated: RunTotals = {
        ("a", "m"): RunTotal(2, 1),
        ("a", "n"): RunTotal(3, 1),
        ("b", None): RunTotal(1, 1),
    }
    recipe = Recipe(
        name="s", repository="o/n", commit="c", paths="p", files_sha256="f",
        describes="d", derived="d", totals=stated,
    )  # fmt: skip
    first, second = find_differences(recipe, found)
    assert first == "a with n: the source has 3 runs, 1 passed; its files give 1, 0"
    assert second.startswith("b with None: the source has 1 runs, 1 passed")


def test_a_run_that_comes_twice_is_an_error() -> None:
    with pytest.raises(ValueError, match="source: run r comes twice"):
        to_tables([run(), run()], "source")


@pytest.mark.parametrize(
    ("given", "normalised"),
    [
        ("google/gemini-3-pro-preview", "gemini-3-pro-preview"),
        ("gpt-5-mini-2025-08-07", "gpt-5-mini"),
        ("claude-haiku-4-5-20251001", "claude-haiku-4-5"),
        ("claude-haiku-4.5", "claude-haiku-4-5"),
        ("openrouter/anthropic/Claude-Sonnet-4.6", "claude-sonnet-4-6"),
        ("gpt-4o", "gpt-4o"),
        ("(agent default)", None),
        (None, None),
    ],
)
def test_one_model_has_one_name(given: str | None, normalised: str | None) -> None:
    assert normalise_model_name(given) == normalised


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("subprocess.TimeoutExpired: Command 'pytest' timed out after 60 seconds", "hang"),
        ("curl: (56) Recv failure: Connection reset by peer", "cut"),
        ("fatal: Could not resolve host: github.com", "cut"),
        ("Error: 429 Too Many Requests, rate limit exceeded", "http_status"),
        ("HTTP/1.1 503 Service Unavailable", "http_status"),
        ("bash: /etc/shadow: Permission denied", "auth"),
        ("403 Forbidden", "auth"),
        ("TypeError: book() got an unexpected keyword argument 'seat'", "protocol_error"),
        ("json.decoder.JSONDecodeError: Expecting value", "protocol_error"),
        ("Output truncated: too many lines", "truncate"),
        ("the output was truncated", "truncate"),
        ("Error: user not found", "tool_error"),
        ("Line 500 of the log has 503 items", "tool_error"),
        ("", "tool_error"),
    ],
)
def test_the_class_of_an_error_is_that_of_the_fault_that_looks_like_it(
    text: str, name: str
) -> None:
    assert classify_error(text) == name
    assert name in ERROR_CLASSES


def test_errors_are_read_at_both_ends_of_a_long_result() -> None:
    middle = "x" * 10**6
    assert classify_error(f"{middle}\nconnection refused") == "cut"
    assert classify_error(f"permission denied\n{middle}") == "auth"
