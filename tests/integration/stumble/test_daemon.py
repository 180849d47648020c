"""`stumble record --daemon` all day long: many agents, kills, restarts, counts on both sides."""

import asyncio
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.support.agents.busy_agents import (
    EVERYBODY,
    Provider,
    open_session,
    run_agent,
    serve_provider,
)
from tests.support.recording_daemon import Daemon, count_by_tag, daemon

QUICK = "idle_seconds = 60\nmin_free_mb = 0\ngrace_seconds = 6\n"
SOAK_SECONDS = 8.0
AGENTS_EACH_SECOND = 17
"""Of three requests each."""


def hosts(provider: Provider) -> dict[str, int]:
    return dict.fromkeys(("model.lab", "tools.lab"), provider.port)


@pytest.mark.parametrize(("tag", "count"), [("", 500), (EVERYBODY, 100)], ids=["tasks", "one task"])
def test_all_conversations_at_once_are_as_many_tapes(tmp_path: Path, tag: str, count: int) -> None:
    async def run() -> tuple[list[int], Provider, Daemon]:
        async with serve_provider(delay=0.2) as provider, open_session() as session:
            with daemon(tmp_path, QUICK, hosts(provider)) as found:
                agents = (run_agent(session, found.proxy, tag or f"t{n}") for n in range(count))
                answers = await asyncio.gather(*agents)
                return answers, provider, found

    answers, provider, found = asyncio.run(run())
    assert answers == [3] * count
    assert count_by_tag(found.tapes()) == provider.seen
    assert len(found.tapes()) == count
    assert set(provider.seen.values()) == {3}


def test_kills_and_handovers_lose_nothing_that_an_agent_received(tmp_path: Path) -> None:
    async def run() -> tuple[Counter[str], Daemon, int]:
        async with serve_provider(delay=0.02) as provider, open_session() as session:
            with daemon(tmp_path, QUICK, hosts(provider)) as found:
                answers, broken = await soak(session, found)
                return answers, found, broken

    answers, found, broken = asyncio.run(run())
    recorded = count_by_tag(found.tapes())
    lost = {tag: (count, recorded[tag]) for tag, count in answers.items() if recorded[tag] < count}
    assert lost == {}
    assert broken == 0, "a handover dropped a connection"


async def soak(session: object, found: Daemon) -> tuple[Counter[str], int]:
    """Run agents at a steady rate; halfway hand over, then kill. Return answers, and the agents
    of the first half that did not get all of theirs."""
    answers: Counter[str] = Counter()
    running: list[asyncio.Task[None]] = []

    async def agent(tag: str) -> None:
        answers[tag] = await run_agent(session, found.proxy, tag)  # type: ignore[arg-type]

    async def run_for(seconds: float, name: str) -> None:
        end, number = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            running.append(asyncio.create_task(agent(f"{name}{number}")))
            number += 1
            await asyncio.sleep(1 / AGENTS_EACH_SECOND)

    await run_for(SOAK_SECONDS / 4, "a")
    found.signal(signal.SIGUSR2)
    await run_for(SOAK_SECONDS / 4, "b")
    await asyncio.to_thread(found.wait_for, "recording on", 2)
    await run_for(SOAK_SECONDS / 4, "c")
    await asyncio.gather(*running)
    broken = sum(count != 3 for count in answers.values())
    await asyncio.to_thread(found.stop)
    await asyncio.to_thread(found.start)
    for number in range(2):
        await run_for(SOAK_SECONDS / 8, f"k{number}x")
        found.kill()
        await asyncio.to_thread(found.start)
    await asyncio.gather(*running)
    return answers, broken


def test_a_provider_that_is_down_and_a_broken_file_of_rules(tmp_path: Path) -> None:
    limits = "min_free_mb = 0\nidle_seconds = 1\ngrace_seconds = 2\nsample = 0\n"
    rules = f"{limits}always = ['error', 'tool:pay']\n[tools]\npay = 'POST /pay'\n"

    async def run() -> Daemon:
        async with serve_provider() as provider, open_session() as session:
            with daemon(tmp_path, rules.replace("'tool:pay'", "'slow'"), hosts(provider)) as found:
                assert await run_agent(session, found.proxy, "good") == 3
                provider.status = 503
                assert await run_agent(session, found.proxy, "bad") == 0
                provider.status = 200
                (tmp_path / "rules.toml").write_text("sample = 'much'\n")
                found.signal(signal.SIGHUP)
                await asyncio.to_thread(found.wait_for, "the old rules stay: ")
                assert "sample: is no number from 0" in found.log.read_text()
                assert await run_agent(session, found.proxy, "again") == 3
                while found.metric("conversations_open"):  # they are sampled by the old rules
                    await asyncio.sleep(0.1)
                (tmp_path / "rules.toml").write_text(rules)
                found.signal(signal.SIGHUP)
                await asyncio.to_thread(found.wait_for, "are in force")
                assert found.page("readyz") == "ready\n"
                assert found.metric("rule_reloads_total") == 2
                assert await run_agent(session, found.proxy, "tool") == 3
                found.stop()
                return found

    found = asyncio.run(run())
    assert count_by_tag(found.tapes()) == {"tool": 3}
    statuses = [x.response.status for t in found.tapes() for x in t.exchanges if x.response]
    assert sorted(statuses) == [200, 200, 200, 503]


def test_a_disk_without_room_harms_no_agent(tmp_path: Path) -> None:
    async def run() -> tuple[list[int], Daemon, float]:
        async with serve_provider() as provider, open_session() as session:
            full = QUICK.replace("min_free_mb = 0", "min_free_mb = 1e9")
            with daemon(tmp_path, full, hosts(provider)) as found:
                agents = (run_agent(session, found.proxy, f"t{n}") for n in range(5))
                answers = await asyncio.gather(*agents)
                return answers, found, found.metric("unrecorded_exchanges_total")

    answers, found, unrecorded = asyncio.run(run())
    assert (answers, unrecorded, found.tapes()) == ([3] * 5, 15, [])
    assert "not recorded: less than" in found.log.read_text()


def test_a_header_names_the_conversation_and_old_tapes_go(tmp_path: Path) -> None:
    limits = "min_free_mb = 0\ngrace_seconds = 2\nmax_store_mb = 0.0018\nidle_seconds = 0.2\n"
    rules = f"by = 'header:X-Session'\n{limits}"

    async def run() -> Daemon:
        async with serve_provider() as provider, open_session() as session:
            with daemon(tmp_path, rules, hosts(provider)) as found:
                for n in range(4):
                    headers = {"x-session": f"s{n}"}
                    await run_agent(session, found.proxy, f"t{n}", headers=headers)
                async with asyncio.timeout(60):
                    while found.metric("tapes_deleted_total") < 3:
                        await asyncio.sleep(0.1)
                return found

    found = asyncio.run(run())
    assert len(found.tapes()) == 1
    assert all(len(tape.exchanges) == 3 for tape in found.tapes())
