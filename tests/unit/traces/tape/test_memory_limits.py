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


@pytest.mark.parametrize("text", ["max", "", "-1"])
def test_a_cgroup_without_a_limit_has_none(text: str, cgroups: Path) -> None:
    (cgroups / "memory.max").write_text(text)
    assert not list(inflation._find_limits("0", "", "/"))
    assert not list(inflation._find_limits("3", "cpuset", "/"))
