"""The processors of a run are those that its cgroup allows."""

import os
from pathlib import Path

import pytest

from stumble.processors import count_usable_processors

ALL = os.process_cpu_count() or 1


def write_limits(root: Path, limits: dict[str, str]) -> None:
    for name, text in limits.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("limits", "own", "expected"),
    [
        ({}, "0::/\n", ALL),
        ({"cpu.max": "max 100000\n"}, "0::/\n", ALL),
        ({"pod/cpu.max": "100000 100000\n"}, "0::/pod\n", 1),
        ({"pod/cpu.max": "50000 100000\n", "pod/c/cpu.max": "max 100000\n"}, "0::/pod/c\n", 1),
        ({"pod/cpu.max": "150000 100000\n"}, "0::/pod\n", min(2, ALL)),
        ({"cpu.max": "unreadable"}, "0::/\n", ALL),
        (
            {"cpu/pod/cpu.cfs_quota_us": "100000\n", "cpu/pod/cpu.cfs_period_us": "100000\n"},
            "7:cpu,cpuacct:/pod\n3:memory:/pod\n",
            1,
        ),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, "7:cpu:/\n", ALL),
    ],
)
def test_a_limit_of_the_cgroup_or_of_one_above_counts(
    tmp_path: Path, limits: dict[str, str], own: str, expected: int
) -> None:
    write_limits(tmp_path, limits)
    assert count_usable_processors(tmp_path, own) == expected


def test_this_machine_has_at_least_one() -> None:
    assert 1 <= count_usable_processors() <= ALL
