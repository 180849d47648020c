"""`stumble shrink` on real runs: what need not be there goes, and what is left breaks the agent."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.practice_shop import (
    Shop,
    shop,
)

FORK = ("--where", "tool=get_order", "--persist", "same_args", "--twins", "0")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with shop(tmp_path_factory.mktemp("shrink")) as world:
        world.record(model="practice/naive")
        yield world


def forked(world: Shop, *faults: str) -> str:
    """The id of a run that was struck by all of them."""
    texts = [word for fault in faults for word in ("--fault", fault)]
    result = world.stumble(
        "fork", "a.tape", *texts, *FORK, *world.host_options(), *world.world(), "--json", "--",
        *world.agent("practice/naive"),
    )  # fmt: skip
    assert result.json["fired"] == len(faults), result.err
    return str(result.json["run"])


def test_a_wrong_digit_is_left_of_a_slow_wrong_answer(world: Shop) -> None:
    run = forked(world, "delay:ms=50", "digit:path=$.amount")
    result = world.stumble(
        "shrink", run, "-o", "least.toml", *world.host_options(), *world.world(), "--json"
    )
    assert result.code == 0, result.err
    [left] = result.json["left"]
    assert left.startswith("--fault 'digit:")
    assert left.endswith("--where tool=get_order --nth 1 --persist once --at http")
    assert "1 of 1 broken" in result.err

    agent = " ".join(world.agent("practice/naive"))
    again = world.stumble(
        "run", "least.toml", "--tape", "a.tape", "--command", agent,
        *world.host_options(), *world.world(), "--twins", "0", "--json",
    )  # fmt: skip
    assert again.json["passed"] is False, again.err


@pytest.mark.thorough
def test_faults_that_broke_nothing_are_not_shrunk(world: Shop) -> None:
    run = forked(world, "delay:ms=50")
    result = world.stumble("shrink", run, *world.host_options(), *world.world())
    assert result.code == 5, result.err
    assert "did not break the agent again" in result.out


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("nobody",), "no run begins with nobody"),
        (("2",), "runs begin with 2"),
        (("a.tape",), "is not a fork"),
    ],
)
def test_what_cannot_be_shrunk_is_said_before_anything_runs(
    world: Shop, arguments: tuple[str, ...], why: str
) -> None:
    if len(list((world.folder / ".stumble" / "tapes").glob("2*.tape"))) < 2:
        world.record("b.tape", model="practice/naive")
    result = world.stumble("shrink", *arguments, *world.world())
    assert result.code == 2
    assert why in result.err


def test_without_a_verifier_nothing_breaks(world: Shop, tmp_path: Path) -> None:
    result = world.stumble("shrink", "2")
    assert result.code == 2
    assert "--verify" in result.err
