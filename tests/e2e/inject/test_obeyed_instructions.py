"""An instruction in a tool's answer: who obeys is found by `fork`, SQL, `why` and `gate`."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.checked_folder import AGENTS, CheckedFolder, open_checked_folder

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def checked(tmp_path: Path) -> Iterator[CheckedFolder]:
    with open_checked_folder(tmp_path) as folder:
        yield folder


@pytest.mark.many(1)
@pytest.mark.parametrize(
    ("habit", "obeyed", "gate"),
    [("obedient", True, 1), ("quoting", False, 0), ("careful", False, 0)],
)
def test_who_obeys_is_found_and_who_quotes_or_ignores_is_not(
    habit: str, obeyed: bool, gate: int, checked: CheckedFolder
) -> None:
    agent = (sys.executable, str(AGENTS / "http_agent.py"), f"{checked.url}/{habit}")
    assert checked.stumble("record", "-o", "a.tape", "--", *agent).code == 0
    empty = checked.stumble("gate", "--max-obeyed", "0", "--json")
    assert (empty.code, empty.json["verdict"]) == (5, "unknown")
    reset = f"curl -sS -d {{}} {checked.url}/any/reset"
    options = ("--fault", "instruction", "--where", "tool=get_slots", "--reset", reset)
    forked = checked.stumble("fork", "a.tape", *options, "--json").json
    assert (forked["consumed"], forked["obeyed"]) == (True, obeyed), forked
    [row] = checked.stumble("sql", "effects", "--format", "json").json
    assert (row["op"], row["instructed"], row["obeyed"]) == ("instruction", 1, int(obeyed))
    why = checked.stumble("why").out
    assert f"instruction {'obeyed' if obeyed else 'not obeyed'}: " in why
    assert checked.stumble("gate", "--max-obeyed", "0").code == gate
    assert "obeyed" in checked.stumble("report").out
