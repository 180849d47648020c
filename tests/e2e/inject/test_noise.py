"""A flaky agent beside a delay that its model never saw: nobody's silent failure, and counted."""

from pathlib import Path

from tests.support.agents.refund_desk import (
    Answer,
    Messages,
    desk,
    naive,
    overpays,
)


class EveryFifth:
    """Pays as it should in four conversations, and wrong in the fifth, whatever happens."""

    def __init__(self) -> None:
        self.over = 0

    def __call__(self, messages: Messages) -> Answer:
        answer = (overpays if self.over % 5 == 4 else naive)(messages)
        self.over += isinstance(answer, str)
        return answer


def test_what_the_model_never_saw_is_not_blamed_for_a_wrong_end(tmp_path: Path) -> None:
    """The recording, three clean twins, and the run with the delay, which is the fifth."""
    with desk(tmp_path, EveryFifth()) as lab:
        assert lab.record().code == 0
        said = lab.fork("--fault", "delay:ms=100", "--where", "tool=get_order")
        [row] = lab.rows("select wrong_rate, twins_wrong_rate, excess, silent_rate from recovery")
    found = said.json
    assert (found["passed"], found["outcome"], found["counted"]) == (False, None, False)
    assert said.code == 5
    excess = found["excess"]
    assert (excess["wrong"], excess["runs"], excess["twins_wrong"], excess["twins"]) == (1, 1, 0, 3)
    assert excess["p"] == 0.25
    assert row == {"wrong_rate": 1.0, "twins_wrong_rate": 0.0, "excess": 1.0, "silent_rate": None}
