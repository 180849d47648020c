"""What the sandboxes of a stage showed of their run, derived from its run events."""

import pytest

from traces.model import RunEvent
from traces.pipeline.stages import derive_stage_rows


@pytest.mark.parametrize(
    ("shown", "seen"),
    [
        ([], None),
        ([()], "[]"),
        ([[]], "[]"),
        ([(), ("b", "a")], '["a", "b"]'),
        ([(), None], None),
    ],
)
def test_what_is_unknown_of_one_attempt_is_unknown_of_the_stage(
    shown: list[object], seen: str | None
) -> None:
    sandboxes = [
        RunEvent(at=1.0, name="sandbox", data={"stage": "T1", "seen": each}) for each in shown
    ]
    graded = RunEvent(at=2.0, name="graded", data={"stage": "T1", "score": 100.0})
    (row,) = derive_stage_rows([*sandboxes, graded], [])
    assert row["seen"] == seen
