"""A small campaign with agents that others wrote: each works, is struck and is judged."""

import json
from collections.abc import Iterator
from copy import replace
from pathlib import Path

import pytest

from tests.support.agents.client_table import CLIENTS
from tests.support.agents.third_party_agents import (
    HOSTS,
    LIMIT,
    Workplace,
    workplace,
)
from traces.store.trace_store import TraceStore

NAMES = ("claude-code", "openai3")

pytestmark = [pytest.mark.thorough, pytest.mark.agents, pytest.mark.timeout(LIMIT * 6)]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Workplace]]:
    """One folder and provider, and each agent in it."""
    with workplace(tmp_path_factory.mktemp("agents"), NAMES[0]) as opened:
        yield [replace(opened, agent=CLIENTS[name]) for name in NAMES]


def campaign(folder: Path, port: str) -> Path:
    """A wrong digit in what the shell printed, against three clean runs and a sham."""
    path = folder / "agents.toml"
    hosts = "\n".join(f'"{host}" = "127.0.0.1:{port}"' for host in HOSTS)
    path.write_text(f"""
name = "agents"
traces = {json.dumps([f"./{name}.tape" for name in NAMES])}
[world]
reset = "true"
verify = "grep -qx 'stock 233511' stock.txt"
[hosts]
{hosts}
[[faults]]
fault = "digit"
nth = 2
at = "model-boundary"
""")
    return path


def test_real_agents_are_struck_and_judged(places: list[Workplace]) -> None:
    folder = places[0].shop.folder
    for name, place in zip(NAMES, places, strict=True):
        result = place.stumble("record", "-o", str(folder / f"{name}.tape"), *place.hosts)
        assert result.code == 0, result.err
    env = places[1].environment() | places[0].environment()
    file = campaign(folder, places[0].shop.hosts[1].rpartition(":")[2])
    result = places[0].shop.stumble("campaign", str(file), "--json", env=env, timeout=LIMIT * 4)
    assert result.json["finished"], result.err
    assert result.code == 5, "two traces are too few for an interval"
    with TraceStore(folder / ".stumble").connect() as sql:
        runs = sql.execute(
            """SELECT condition, count(*), count(DISTINCT parent_id), count(*) FILTER (passed)
            FROM trajectories WHERE campaign = 'agents' AND source = 'fork'
            GROUP BY condition ORDER BY condition"""
        ).fetchall()
        injected = sql.execute(
            """SELECT op, consumed, noticed, class, baseline_valid
            FROM injections JOIN outcomes USING (injection_id) WHERE NOT sham"""
        ).fetchall()
    assert runs == [("clean", 6, 2, 6), ("fault", 2, 2, 0), ("sham", 2, 2, 2)]
    assert injected == [("digit", True, False, "silent_wrong", True)] * 2
