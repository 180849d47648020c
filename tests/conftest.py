"""What all tests share: the real data beside the checkout, and what a skip may be for."""

import gc
import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support.tiers import load_profile, select_tests

NO_SHARED = "a clone without ../shared"

# Where a shell starts the tests in the background it is ignored, and so it would be in all that
# they start; to interrupt is what some of them do.
signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # by nohup, and so in all that is started
    signal.signal(signal.SIGHUP, lambda *_: None)

# What `stumble` keeps between runs is made once, not for each home that a test makes.
os.environ.setdefault("XDG_CACHE_HOME", str(Path.home() / ".cache"))

load_profile()


class CpuClock:
    """Processor seconds of this process and of all children that it has waited for."""

    def __init__(self) -> None:
        self._before = self._read()

    def spend(self) -> float:
        """Return the seconds since the last call: those of one test, its fixtures included."""
        before, self._before = self._before, self._read()
        return self._before - before

    @staticmethod
    def _read() -> float:
        return sum(os.times()[:4])


CPU = CpuClock()

type Report = pytest.TestReport | pytest.CollectReport


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real recordings that stand beside the checkout and are too large for it."""
    data = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not data.is_dir():
        pytest.skip(NO_SHARED)
    return data


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the tests of the tier, shard and order that the environment names."""
    named = any("::" in argument for argument in config.args)
    chosen = select_tests(items, named)
    kept = set(chosen)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = chosen


def pytest_collection_finish() -> None:
    """Keep thousands of tests out of each garbage collection: they last as long as the process."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Report, Report]:
    if call.when == "teardown":
        item.user_properties += [("node", item.nodeid), ("cpu", f"{CPU.spend():.3f}")]
    return unskipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Report, Report]:
    return unskipped((yield))


def unskipped(report: Report) -> Report:
    """In CI a skip is a failure, since it hides what was not installed; see NO_SHARED."""
    if os.environ.get("CI") != "true" or not isinstance(report.longrepr, tuple):
        return report
    path, line, reason = report.longrepr
    if report.skipped and reason != f"Skipped: {NO_SHARED}":
        report.outcome = "failed"
        report.longrepr = f"{path}:{line}: {reason} (in CI nothing but {NO_SHARED!r} is skipped)"
    return report
