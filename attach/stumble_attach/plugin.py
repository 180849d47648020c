"""pytest plugin: a fixture that runs `stumble`, and a marker that checks limits after a test."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from stumble_attach.command import StumbleCommand

MARKER_HELP = (
    "stumble(min_recovery=, min_handled=, max_silent=, confidence=, by=, op=, model=, agent=, "
    "scenario=, campaign=, store=): after the test, hold what is in the store against limits"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names a store for all tests."""
    parser.addoption(
        "--stumble",
        metavar="STORE",
        help="store of the tests that use the fixture `stumble`, where recordings of their folder "
        "find their workspaces; default: an empty one for each test",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", MARKER_HELP)


@pytest.fixture(name="stumble")
def stumble_fixture(request: pytest.FixtureRequest, tmp_path: Path) -> StumbleCommand:
    """The `stumble` command on a store of this test, or on the one that the marker names."""
    return _make_stumble_command(request.node, tmp_path)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Check the marker's limits after the test itself has passed."""
    result = yield
    marker = pyfuncitem.get_closest_marker("stumble")
    if marker is not None:
        _check_marker_limits(pyfuncitem, marker)
    return result


def _check_marker_limits(pyfuncitem: pytest.Function, marker: pytest.Mark) -> None:
    limits = {name: value for name, value in marker.kwargs.items() if name != "store"}
    if marker.args or not limits:
        pytest.fail(f"a marker without a limit judges nothing: {MARKER_HELP}", pytrace=False)
    fixture = pyfuncitem.funcargs.get("stumble")
    stumble = (
        fixture if isinstance(fixture, StumbleCommand) else _make_stumble_command(pyfuncitem, None)
    )
    result = stumble.gate(**limits)
    if result.code:
        pytest.fail(f"stumble gate: exit {result.code}\n{result.out}{result.err}", pytrace=False)


def _make_stumble_command(item: pytest.Item, fresh: Path | None) -> StumbleCommand:
    marker = item.get_closest_marker("stumble")
    store_name = marker.kwargs.get("store") if marker else None
    store_name = store_name or item.config.getoption("--stumble")
    if store_name:
        store = item.config.rootpath / store_name
    elif fresh is None:
        pytest.fail("the marker needs store=... or a test that uses the fixture", pytrace=False)
    else:
        store = fresh / ".stumble"
        store.mkdir(exist_ok=True)
    return StumbleCommand(store=store, folder=item.config.rootpath)
