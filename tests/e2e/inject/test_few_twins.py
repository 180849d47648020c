"""One or two clean twins allow no verdict: nothing is spent on them, and nothing else is blamed."""

from collections.abc import Iterator

import pytest

from tests.support.agents.refund_desk import (
    Desk,
    desk,
)

DIGIT = ("--fault", "digit:field=total", "--where", "tool=get_order")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk(tmp_path_factory.mktemp("few")) as found:
        found.record()
        yield found


def test_too_few_are_refused_before_anything_runs(lab: Desk) -> None:
    asked = lab.asked
    for twins in ("1", "2"):
        said = lab.fork(*DIGIT, "--twins", twins)
        assert said.code == 2
        assert f"{twins} of the 3 clean twins that a verdict needs: give 3 or more" in said.err
    world = lab.world("reset", "verify")
    lab.bench.write("few.toml", 'traces = ["a.tape"]\ntwins = 2\n')
    for command in (("few.toml",), ("--traces", "a.tape", "--twins", "2", *world)):
        for more in ((), ("--plan",)):
            said = lab.bench.stumble("campaign", *command, *more)
            assert said.code == 2
            assert "twins: 2 of the 3 clean twins that a verdict needs" in said.err
    assert lab.asked == asked


def test_none_at_all_is_announced_and_is_the_reason_that_is_given(lab: Desk) -> None:
    planned = lab.bench.stumble(
        "campaign", "--traces", "a.tape", *DIGIT, "--twins", "0", "--plan", *lab.world("reset")
    )
    assert "no clean twins: these runs give facts" in planned.out
    said = lab.fork(*DIGIT, "--twins", "0")
    assert "no clean twins: these runs give facts" in said.err
    assert (said.code, said.json["excluded"]) == (5, "few_twins")
    [row] = lab.rows("select excluded from judged_injections")
    assert row == {"excluded": "few_twins"}
    shown = lab.bench.stumble("why", said.json["run"])
    assert "no class: few_twins, 0 of 3 clean twins came to an end" in shown.out
    assert "no verifier" not in shown.out
