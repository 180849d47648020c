"""The groups of checks, which of them a tier runs, and in which order."""

import sys
from dataclasses import KW_ONLY, dataclass, field

PYTHON = (sys.executable, "-m")


@dataclass(frozen=True, slots=True)
class Group:
    """A command; `workers` makes it one of pytest, run in so many processes (0: in one)."""

    command: tuple[str, ...]
    _: KW_ONLY
    workers: int | None = None
    environment: dict[str, str] = field(default_factory=dict)
    quiet: bool = False
    """Whether its output is shown only if it fails."""
    yields: bool = False
    """Whether it leaves the processors to the groups beside it, as it only computes."""
    downloads: bool = False
    """Whether its time is that of a package registry."""


def pytest(*arguments: str, workers: int, yields: bool = False) -> Group:
    return Group((*PYTHON, "pytest", "-q", *arguments), workers=workers, yields=yields)


UNIT = ("tests/unit", "tests/integration")
GROUPS: dict[str, Group] = {
    "lint": Group((*PYTHON, "ruff", "check")),
    "format": Group((*PYTHON, "ruff", "format", "--check")),
    "types": Group((*PYTHON, "mypy")),
    # Compiles all modules once, else each worker in a fresh clone does.
    "collect": Group((*PYTHON, "pytest", "--collect-only", "-qq", *UNIT), quiet=True),
    "unit": pytest(*UNIT, "-m", "not programs and not alone", workers=3),
    "install": Group((*PYTHON, "tests.agents"), downloads=True),
    "docs": Group(("make", "--no-print-directory", "docs")),
    "programs": pytest(*UNIT, "-m", "programs and not alone", workers=2),
    "statistical": pytest("tests/statistical", "--timeout", "1200", workers=2, yields=True),
    "e2e": pytest("tests/e2e", "tests/hostile", "tests/browser", workers=4),
    "docker": pytest("tests/docker", workers=0),
    "clients": pytest("tests/clients", workers=3),
    "mutation": Group((sys.executable, "tests/mutation/run.py")),
    "selftest": Group((*PYTHON, "stumble", "selftest")),
    "alone": pytest(*UNIT, "-m", "alone", workers=0),
    "bench": Group((*PYTHON, "tests.bench.gate")),
    "spark": pytest("tests/spark", workers=0),
    "real": pytest("tests/real", workers=0),
}
STAGES: tuple[tuple[tuple[str, ...], ...], ...] = (
    # mypy uses one processor, and installations wait for the network: the tests use the rest.
    (("lint", "format", "types", "docs"), ("install",), ("collect", "unit")),
    # Runs of agents often wait; the statistical tests compute in what they leave.
    (("statistical",), ("clients",), ("e2e", "selftest")),
    (("docker", "programs"), ("mutation",)),
    (("alone", "bench"), ("spark",), ("real",)),
)
"""Stages follow one another. The lanes of a stage run side by side, the groups of a lane do not."""

TIERS = {
    "test": ("lint", "format", "collect", "types", "unit"),
    # pyspark is 430 MB to fetch, and Spark needs Java: `make test-spark`.
    # A fresh environment with a real model runs the demo; Phoenix is 620 MB: `make test-real`.
    "gate": tuple(name for name in GROUPS if name not in ("spark", "real")),
    "all": tuple(name for name in GROUPS if name not in ("bench", "spark", "real")),
}
SHARDED = ("unit", "programs", "statistical", "e2e", "docker", "clients", "mutation", "alone")
"""Groups of which a shard runs a part; the first shard runs the others."""


def choose_groups(names: list[str], first_shard: bool) -> tuple[str, ...]:
    """Return the groups of a tier, or those that are named.

    Raises ValueError if there is no group of a name.
    """
    if len(names) == 1 and names[0] in TIERS:
        chosen = TIERS[names[0]]
        return chosen if first_shard else tuple(name for name in chosen if name in SHARDED)
    for name in names:
        if name not in GROUPS:
            raise ValueError(f"no group {name}; there are {', '.join((*TIERS, *GROUPS))}")
    return tuple(names)
