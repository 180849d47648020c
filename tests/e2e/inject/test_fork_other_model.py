"""`fork --model`: the same prefix and fault, and another model that goes on."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.support.practice_shop import Shop, shop

FAULT = ("--fault", "http_status:code=503", "--where", "tool=get_order")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A recording of the model that gives up at an error."""
    with shop(tmp_path_factory.mktemp("models")) as world:
        assert world.record(model="practice/naive").code == 0
        yield world


def fork(world: Shop, *more: str) -> tuple[int, dict[str, object], Counter[str]]:
    """Exit code, report, and how often each model was asked."""
    before = len(world.asked())
    said = world.stumble(
        "fork", "a.tape", *FAULT, *world.world(), *world.host_options(), "--json", *more
    )
    asked = Counter(str(request["model"]) for request in world.asked()[before:])
    return said.code, said.json, asked


def test_another_model_recovers_from_what_the_recorded_one_does_not(recorded: Shop) -> None:
    code, own, asked = fork(recorded)
    assert code == 0
    assert set(asked) == {"practice/naive"}
    code, other, asked = fork(recorded, "--model", "practice/retries")
    assert code == 0
    assert set(asked) == {"practice/retries"}
    outcomes = recorded.stumble(
        "sql",
        "select t.model, o.class from outcomes o join injections i using (injection_id)"
        " join trajectories t on t.trajectory_id = i.trajectory_id where not i.sham order by 1",
        "--json",
    ).json
    assert [row["model"] for row in outcomes] == ["practice/naive", "practice/retries"]
    first, second = (row["class"] for row in outcomes)
    assert first != second
    assert second in ("recovered", "masked")


def test_the_plan_names_both_models(recorded: Shop) -> None:
    said = recorded.stumble(
        "fork", "a.tape", *FAULT, *recorded.world(), *recorded.host_options(),
        "--twins", "0", "--model", "practice/retries",
    )  # fmt: skip
    assert "then practice/retries" in said.err
