"""Forks of agents whose tools answer with times, ids, durations and counts: verdicts all the same.

`EXHAUSTIVE` makes each fork twenty times.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stumble.ui.values.injection_view import read_injection_view
from stumble.ui.values.run_rows import read_run_rows
from stumble.ui.values.run_view import build_run_view
from tests.support.servers.changing_clinic import ClinicKind, serve_clinic
from tests.support.tiers import EXHAUSTIVE
from tests.support.warm_stumble import CommandResult, run_stumble
from traces.store.trace_store import TraceStore

TRIES = 20 if EXHAUSTIVE else 1
AGENT = Path(__file__).parents[2] / "support" / "agents" / "clinic_agent.py"
FIRST_WRITE, LAST_CALL = ("tool=book", "nth=1"), ("tool=confirm", "nth=2")


@dataclass(frozen=True, slots=True)
class ClinicRuns:
    """A clinic, and a folder with a recording of its agent."""

    url: str
    folder: Path

    def stumble(self, *arguments: str) -> CommandResult:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        env = os.environ | {"HOME": str(home), "STUMBLE_STORE": str(self.folder / ".stumble")}
        return run_stumble(arguments, cwd=self.folder, env=env, timeout=200)

    def agent(self, *words: str) -> tuple[str, ...]:
        return sys.executable, str(AGENT), self.url, *words

    def fork(self, where: str, when: str, *options: str) -> CommandResult:
        reset, verify = (" ".join(self.agent(word)) for word in ("reset", "verify"))
        result = self.stumble(
            "fork", "a.tape", "--fault", "http_status:code=503", "--where", where, "--when", when,
            "--reset", reset, "--verify", verify, "--json", *options,
        )  # fmt: skip
        assert result.out, result.err
        return result


@contextmanager
def recorded_clinic(kind: ClinicKind, folder: Path) -> Iterator[ClinicRuns]:
    with serve_clinic(kind) as url:
        runs = ClinicRuns(url, folder)
        result = runs.stumble("record", "--times", "1", "-o", "a.tape", "--", *runs.agent())
        assert result.code == 0, result.err
        yield runs


KINDS: tuple[ClinicKind, ...] = ("times", "requests", "durations", "counts", "ids", "numbers")


@pytest.mark.timeout(100 + 60 * TRIES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("site", [FIRST_WRITE, LAST_CALL], ids=["first write", "last call"])
def test_a_fork_of_a_world_that_answers_differently_each_time_is_judged(
    kind: ClinicKind, site: tuple[str, str], tmp_path: Path
) -> None:
    with recorded_clinic(kind, tmp_path) as runs:
        for _ in range(TRIES):
            said = runs.fork(*site)
            found = said.json
            assert found["diverged"] == [], said.err
            assert [twin["passed"] for twin in found["twins"]] == [True] * 3
            assert (found["fired"], found["outcome"]) == (1, "honest_fail")


def test_what_was_shown_as_recorded_and_renamed_is_counted(tmp_path: Path) -> None:
    with recorded_clinic("ids", tmp_path) as runs:
        found = runs.fork(*LAST_CALL).json
        rows: list[dict[str, Any]] = runs.stumble(
            "sql", "--json", "select trajectory_id, substituted, renamed, remade"
            " from trajectories where source = 'fork' order by trajectory_id",
        ).json  # fmt: skip
        why = runs.stumble("why", f"{found['run']}/1")
        shown = runs.stumble("show", found["run"], "--exchanges")
    assert {row["substituted"] for row in rows} == {2}, "two bookings"
    assert {row["renamed"] for row in rows if row["trajectory_id"] == found["run"]} == {1}
    assert sum(row["remade"] for row in rows) == 1
    assert "2 live values shown as recorded (id: bk-" in why.out
    assert "1 id renamed (bk-" in why.out
    assert "1 id renamed" in shown.out
    (remade,) = (row["trajectory_id"] for row in rows if row["remade"])
    store = TraceStore(tmp_path / ".stumble")
    with store.open_locked() as connection:
        pages = [read_run_rows(connection, id, store.tapes) for id in (remade, found["run"])]
    twin, faulted = (dict(build_run_view(rows).facts) for rows in pages if rows is not None)
    about = dict(read_injection_view(store, f"{found['run']}/1", found["run"]).about)
    assert "made again after 1 run left the recording" in twin["before the fork"]
    assert faulted["before the fork"] == "2 live values shown as recorded; 1 id renamed"
    assert "1 id renamed (bk-" in about["before it"]


def test_a_clock_whose_time_a_later_call_uses_stops_the_fork(tmp_path: Path) -> None:
    with recorded_clinic("clock", tmp_path) as runs:
        said = runs.fork("tool=book", "nth=1")
    assert said.code == 3
    (why, *_) = said.json["diverged"]
    assert "/tools/now was" in why
    assert "a later call or end uses it" in why
    assert why.endswith("--match 'ignore:body.now'")


def test_a_clock_at_the_forked_call_itself_is_live(tmp_path: Path) -> None:
    with recorded_clinic("clock", tmp_path) as runs:
        found = runs.fork("tool=now", "nth=1").json
    assert (found["fired"], found["diverged"]) == (1, [])


def test_a_rule_lets_a_changed_answer_pass(tmp_path: Path) -> None:
    with recorded_clinic("clock", tmp_path) as runs:
        found = runs.fork("tool=book", "nth=1", "--match", "ignore:body.now").json
    assert (found["fired"], found["diverged"]) == (1, [])
    assert json.dumps(found["twins"]).count('"remade": 0') == 3


@pytest.mark.parametrize("kind", ["durations", "counts"])
def test_what_a_fork_has_shown_to_change_is_learnt_from_its_answers(
    kind: ClinicKind, tmp_path: Path
) -> None:
    with recorded_clinic(kind, tmp_path) as runs:
        first = runs.fork(*FIRST_WRITE).json
        assert runs.stumble("replay", "a.tape").code == 0, "which has no live answers"
        result = runs.stumble("accept", "a.tape", "--answers")
        assert result.code == 0, result.out
        assert result.out.startswith("accepted counter:body.meta."), result.out
        again = runs.fork(*FIRST_WRITE).json
        assert runs.stumble("accept", "a.tape", "--answers").out.endswith("from a.tape\n")
    for found, remade in ((first, 1), (again, 0)):
        assert (found["fired"], found["diverged"]) == (1, [])
        assert sum(run["remade"] for run in (found, *found["twins"])) == remade


def test_no_rule_is_learnt_for_a_time_that_is_the_task(tmp_path: Path) -> None:
    with recorded_clinic("clock", tmp_path) as runs:
        assert runs.fork("tool=book", "nth=1").code == 3
        result = runs.stumble("accept", "a.tape", "--answers")
    assert result.code == 1
    assert "not accepted: now is used by a later call or end" in result.out
