"""Single rules of strict matching, each by itself."""

from pathlib import Path

import pytest

from replay.matching.surrounding_text import SurroundingText
from replay.matching.tool_calls import ServedCall, ToolCallContext
from tests.support.strict_replay import (
    StrictReplay,
    asked,
    recorded,
    secrets_of,
)
from traces.bodies.canonical_json import parse_exact_json

PASSWORD = "kT9-vLq2-77xR-mWz4-secret"


def test_what_a_named_call_was_told_is_not_for_another_named_call() -> None:
    asker = ToolCallContext(ServedCall(1, "a", named=True), given_seqs={1})
    assert asker.may_have(ServedCall(1, "a", named=True))
    assert not asker.may_have(ServedCall(1, "b", named=True))
    assert asker.may_have(ServedCall(1, "b", named=False))
    assert asker.may_have(None)


def test_a_placeholder_that_no_answer_gave_is_not_its_secret(tmp_path: Path) -> None:
    secrets = secrets_of(SHOP_PASSWORD=PASSWORD)
    said = asked("POST", "http://shop/login", f'{{"code": "{PASSWORD}"}}')
    tape = recorded(tmp_path / "a.tape", [said], secrets)
    (written,) = tape.exchanges
    assert PASSWORD.encode() not in written.request.body
    replay = StrictReplay(tape, secrets)
    assert replay.ask(said) == 0
    assert replay.index.find(written.request, lambda request: request) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [("1e400", "null"), ("1e400", "1e401"), ("1.0", "1"), ("0.1", "0.10"), ("1e2", "100")],
)
def test_a_number_is_its_text(one: str, other: str) -> None:
    assert parse_exact_json(f"[{one}]".encode()) != parse_exact_json(f"[{other}]".encode())


def test_a_learnt_value_is_one_between_its_neighbours_only() -> None:
    day = SurroundingText("Today is ", ", ").compile_pattern(r"\d{4}-\d\d-\d\d")
    text = "Today is 2026-11-22, due by 2026-11-22, or Today is 2026-11-23!"
    assert [found.start() for found in day.finditer(text)] == [9]
