"""A fixture that runs `stumble`, and a marker that holds limits once a test has run."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from stumble_attach.command import Stumble

HELP = (
    "stumble(min_recovery=, min_handled=, max_silent=, confidence=, by=, op=, model=, agent=, "
    "scenario=, campaign=, store=): after the test, hold what is in the store against limits"
)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", HELP)


@pytest.fixture(name="stumble")
def stumble_fixture(request: pytest.FixtureRequest, tmp_path: Path) -> Stumble:
    """The `stumble` command on a store of this test, or on the one that the marker names."""
    return _stumble(request.node, tmp_path)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Hold the marker's limits once the test itself has passed."""
    ran = yield
    marker = pyfuncitem.get_closest_marker("stumble")
    if marker is not None:
        _hold(pyfuncitem, marker)
    return ran


def _hold(pyfuncitem: pytest.Function, marker: pytest.Mark) -> None:
    limits = {name: value for name, value in marker.kwargs.items() if name != "store"}
    if marker.args or not limits:
        pytest.fail(f"a marker without a limit judges nothing: {HELP}", pytrace=False)
    told = pyfuncitem.funcargs.get("stumble")
    stumble = told if isinstance(told, Stumble) else _stumble(pyfuncitem, None)
    answer = stumble.gate(**limits)
    if answer.code:
        pytest.fail(f"stumble gate: exit {answer.code}\n{answer.out}{answer.err}", pytrace=False)


def _stumble(item: pytest.Item, fresh: Path | None) -> Stumble:
    marker = item.get_closest_marker("stumble")
    named = marker.kwargs.get("store") if marker else None
    if named is None and fresh is None:
        pytest.fail("the marker needs store=... or a test that uses the fixture", pytrace=False)
    store = item.config.rootpath / named if named else Path(str(fresh)) / ".stumble"
    return Stumble(store=store, folder=item.config.rootpath)
