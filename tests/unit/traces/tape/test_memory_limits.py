"""The bound of reading is half of the memory that this process may have."""

from pathlib import Path

import pytest

from traces.tape import inflation


@pytest.fixture(autouse=True)
def cgroups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(inflation, "CGROUPS", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("group", "file"),
    [
        (("0", "", "/a/b"), "a/b/memory.max"),
        (("0", "", "/a/b"), "a/memory.max"),
        (("0", "", "/../elsewhere"), "memory.max"),
        (("4", "cpu,memory", "/a"), "memory/a/memory.limit_in_bytes"),
        (("4", "memory", "/of/the/host"), "memory/memory.limit_in_bytes"),
    ],
)
def test_a_limit_of_the_cgroup_or_above_it_counts(
    group: tuple[str, str, str], file: str, cgroups: Path
) -> None:
    (cgroups / file).parent.mkdir(parents=True, exist_ok=True)
    (cgroups / file).write_text(f"{512 << 20}\n")
    assert list(inflation._find_limits(*group)) == [512 << 20]


def test_restored_bodies_take_no_memory_but_a_bounded_time() -> None:
    budget, room = inflation.InflationBudget(1 << 20), inflation.InflationBudget(1 << 20)
    for _ in range(20_480):
        assert room.has_room(budget, 0)
        budget.check(1 << 20)
    assert budget.spent == 0
    with pytest.raises(ValueError, match="more comes out"):
        budget.check(1)
    assert not inflation.InflationBudget((1 << 20) - 1).has_room(budget, 0)
    with pytest.raises(ValueError, match="more comes out"):
        room.check(room.left // 2 + 1)


@pytest.mark.parametrize("text", ["max", "", "-1"])
def test_a_cgroup_without_a_limit_has_none(text: str, cgroups: Path) -> None:
    (cgroups / "memory.max").write_text(text)
    assert not list(inflation._find_limits("0", "", "/"))
    assert not list(inflation._find_limits("3", "cpuset", "/"))


def test_half_of_the_memory_counts_where_no_cgroup_has_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    half = inflation._get_half_of_memory.__wrapped__
    physical = half()
    assert physical > 1 << 26
    monkeypatch.setattr(inflation, "_read_cgroup_limits", lambda: (512 << 20, 1 << 60))
    assert half() == 256 << 20
