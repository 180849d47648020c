"""What all tests share: the real data beside the checkout, and what a skip may be for."""

import gc
import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support.example_counts import (
    THOROUGH,
    keep_some,
    load_profile,
)

NO_SHARED = "a clone without ../shared"

# Where a shell starts the tests in the background it is ignored, and so it would be in all that
# they start; to interrupt is what some of them do.
signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # by nohup, and so in all that is started
    signal.signal(signal.SIGHUP, lambda *_: None)

# What `stumble` keeps between runs is made once, not for each home that a test makes.
os.environ.setdefault("XDG_CACHE_HOME", str(Path.home() / ".cache"))

load_profile()

type Report = pytest.TestReport | pytest.CollectReport


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real recordings that stand beside the checkout and are too large for it."""
    data = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not data.is_dir():
        pytest.skip(NO_SHARED)
    return data


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep some cases of the tests that have many, unless all are asked for."""
    if THOROUGH or any("::" in argument for argument in config.args):
        return
    items[:], left_out = keep_some(items)
    config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish() -> None:
    """Keep thousands of tests out of each garbage collection: they last as long as the process."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Report, Report]:
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
