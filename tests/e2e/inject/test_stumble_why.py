"""`stumble why`: the evidence behind a verdict, from tapes alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.stores.judged_fork import make_judged_fork
from tests.support.stores.scripted_runs import (
    ORDER,
)
from traces.model import JUDGE_VERSION
from traces.store.trace_store import TraceStore


@pytest.fixture
def store(tmp_path: Path) -> TraceStore:
    return make_judged_fork(tmp_path / "store")


def why(store: TraceStore, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "stumble", "why", *words],
        capture_output=True, text=True, timeout=60,
        env=os.environ | {"STUMBLE_STORE": str(store.root)},
    )  # fmt: skip


def test_the_chain_of_evidence_stands_on_one_screen(store: TraceStore) -> None:
    said = why(store, "lied-1")
    assert said.returncode == 0, said.stderr
    assert said.stdout.splitlines() == [
        "lied-1/1: fault run lied-1, a fork of a",
        "  injected  get_order (step 2) at http with digit(), once, D3",
        "            total: 1250.4 -> 1259.4",
        "  consumed  yes: the corrupted value reached the model, request 2",
        "            the agent took 2 steps with it",
        "  noticed   no",
        "            noticed with a probability of 0.05",
        "  taint     step 3, issue_refund: 1259.4 (exact)",
        "            1 wrong writes",
        "  claim     delivered (by form)",
        "            as in clean runs: DONE",
        "  twins     twin-0: end state right",
        "            twin-1: end state right",
        "            twin-2: end state right",
        "            ends wrong: 1 of 1 with the fault, 0 of 3 clean twins "
        "(p = 0.25 if the fault had no effect)",
        "  verdict   silent_wrong: not noticed, and delivered wrong as done",
        "            end state wrong, claims success: yes, baseline valid: yes",
        f"  judge     version {JUDGE_VERSION}",
    ]


def test_what_an_agent_says_does_not_act_on_the_terminal(tmp_path: Path) -> None:
    said = "DONE \x1b]0;title\x07\x9b31m\u202e"
    shown = why(make_judged_fork(tmp_path / "store", said), "lied-1").stdout
    assert r"DONE \x1b]0;title\x07\x9b31m\u202e" in shown
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(shown)


def test_the_same_as_data_and_in_the_store(store: TraceStore) -> None:
    found = json.loads(why(store, "lied-2/1", "--json").stdout)
    assert (found["class"], found["level"], found["first_use_step"]) == ("silent_wrong", "exact", 3)
    assert found["fault"]["original"] == ORDER
    assert found["twin_ends"] == {f"twin-{n}": True for n in range(3)}
    with store.connect() as sql:
        kept = sql.execute(
            "select class, level, first_use_step, blast_radius, used_in_write, noticed, steps_after"
            " from outcomes where injection_id = 'lied-2/1'"
        ).fetchone()
    assert kept == ("silent_wrong", "exact", 3, 1, True, False, 2)


@pytest.mark.parametrize(
    ("id", "says"),
    [
        ("lied", "'lied' is a prefix of 2 injections: lied-1/1, lied-2/1"),
        ("lyed-1/1", "no injection 'lyed-1/1'; did you mean lied-1/1?"),
        ("zzz", "no injection 'zzz'; one is lied-2/1"),
    ],
)
def test_an_id_that_is_none_is_met_with_the_nearest(store: TraceStore, id: str, says: str) -> None:
    said = why(store, id)
    assert (said.returncode, said.stdout) == (2, "")
    assert says in said.stderr


def test_a_store_without_injections_says_how_to_make_some(tmp_path: Path) -> None:
    said = why(TraceStore(tmp_path / "empty"), "x")
    assert said.returncode == 2
    assert "the store has no injections; stumble fork makes some" in said.stderr


def test_the_latest_injection_needs_no_name(store: TraceStore, tmp_path: Path) -> None:
    assert why(store).stdout == why(store, "lied-2").stdout
    empty = TraceStore(tmp_path / "empty")
    assert "no injections" in why(empty).stderr
