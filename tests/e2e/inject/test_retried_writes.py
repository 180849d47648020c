"""A real client that tries a lost write again pays twice: measured, and no divergence."""

from collections.abc import Iterator

import pytest

from tests.support.agents.refund_desk import (
    TRUE,
    Desk,
    desk,
)

RETRIES = {"TRIES": "3", "PATIENCE": "8"}
"""What the agent's httpx does: it waits so long for an answer, and tries so often."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk(tmp_path_factory.mktemp("retried")) as found:
        assert found.record(env=RETRIES).code == 0
        yield found


@pytest.mark.many(2)
@pytest.mark.parametrize(
    "fault", ["lost_ack", "lost_ack:how=reset", "cut:after_bytes=0", "delay:ms=20000"]
)
def test_a_write_that_is_sent_again_ends_in_two_refunds(lab: Desk, fault: str) -> None:
    said = lab.fork("--fault", fault, "--where", "tool=issue_refund", env=RETRIES)
    assert said.code == 0, said.out + said.err
    assert lab.refunds == [TRUE, TRUE]
    assert (said.json["diverged"], said.json["passed"]) == ([], False)
    assert (said.json["outcome"], said.json["counted"]) == ("silent_wrong", True)
    facts = "unsafe_retry, writes_extra, class, judged, handled"
    [row] = lab.rows(
        f"select {facts} from judged_injections join outcomes using (injection_id, class)"
        f" where trajectory_id = '{said.json['run']}'"
    )
    assert row == {
        "unsafe_retry": True, "writes_extra": 1, "class": "silent_wrong", "judged": True,
        "handled": False,
    }  # fmt: skip


def test_a_retry_of_what_never_arrived_is_absorbed_and_handled(lab: Desk) -> None:
    said = lab.fork("--fault", "http_status:code=503", "--where", "tool=issue_refund", env=RETRIES)
    assert said.code == 0, said.err
    assert lab.refunds == [TRUE]
    assert (said.json["outcome"], said.json["unreached_reason"]) == ("unreached", "absorbed")
    [row] = lab.rows(
        f"select handled from judged_injections where trajectory_id = '{said.json['run']}'"
    )
    assert row == {"handled": True}
