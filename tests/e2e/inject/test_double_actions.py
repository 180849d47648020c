"""A lost acknowledgement and a client that tries again: two payments, in SQL, why and gate."""

from collections.abc import Iterator

import pytest

from tests.support.agents.refund_desk import TRUE, Desk, desk

RETRIES = {"TRIES": "3", "PATIENCE": "8"}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk(tmp_path_factory.mktemp("effects")) as found:
        assert found.record(env=RETRIES).code == 0
        yield found


def facts(lab: Desk, run: str) -> tuple[object, object]:
    [row] = lab.rows(
        f"select double_action, lost_action from judged_injections where trajectory_id = '{run}'"
    )
    return row["double_action"], row["lost_action"]


def ledger(lab: Desk, key: str = "order,amount") -> tuple[str, ...]:
    return "--ledger", f"http://{lab.place}/world/ledger", "--ledger-key", key


AT_REFUND = ("--where", "tool=issue_refund")


@pytest.mark.thorough
def test_a_lost_acknowledgement_pays_twice_and_the_gate_fails(lab: Desk) -> None:
    said = lab.fork("--fault", "lost_ack", *AT_REFUND, *ledger(lab), env=RETRIES)
    assert said.code == 0, said.err
    assert lab.refunds == [TRUE, TRUE]
    assert facts(lab, said.json["run"]) == (True, False)
    [row] = lab.rows("select injection_id from injections where not sham limit 1")
    why = lab.bench.stumble("why", row["injection_id"]).out
    assert f"effect committed 2 times, in clean twins 1: order=ord-7314 amount={TRUE}" in why
    gate = lab.bench.stumble("gate", "--max-double", "0", "--max-lost", "0", "--op", "lost_ack")
    assert gate.code == 1, gate.out + gate.err
    assert "FAIL                 double actions at most 0: 1 in 1 faulted runs" in gate.out
    assert "pass                 lost actions at most 0: 0 in 1 faulted runs" in gate.out
    assert "Done twice, or not at all" in lab.bench.stumble("report").out


def test_a_success_that_never_happened_is_lost(lab: Desk) -> None:
    said = lab.fork("--fault", "silent_noop", *AT_REFUND, *ledger(lab), env=RETRIES)
    assert said.code == 0, said.err
    assert facts(lab, said.json["run"]) == (False, True)


def test_a_key_that_differs_from_run_to_run_and_no_ledger_are_unknown(lab: Desk) -> None:
    fault = ("--fault", "http_status:code=503", *AT_REFUND)
    said = lab.fork(*fault, *ledger(lab, "id"), env=RETRIES)
    assert facts(lab, said.json["run"]) == (None, None)
    [row] = lab.rows(
        "select json_extract_string(reasons, '$.double_action') as why from verdicts join"
        f" injections using (injection_id) where trajectory_id = '{said.json['run']}'"
    )
    assert row["why"] == "the keys of the effect ledger differ from run to run"
    gate = lab.bench.stumble("gate", "--max-double", "0", "--op", "http_status")
    assert gate.code == 5, gate.out
    assert "1 unknown: give a ledger (--ledger), and 3 clean twins" in gate.out
