"""`stumble record --daemon` all day long: many agents, kills, restarts, counts on both sides.

SOAK_SECONDS=600 python -m pytest -s tests/integration/stumble/test_daemon.py -k handovers
"""

import asyncio
import os
import signal
import socket
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.support.agents.busy_agents import (
    EVERYBODY,
    Asker,
    Provider,
    open_session,
    run_agent,
    serve_provider,
)
from tests.support.recording_daemon import (
    Daemon,
    count_by_tag,
    daemon,
    free_port,
    wait_for_end,
)
from tests.support.small_disk import SmallDisk, small_disk
from tests.support.tiers import examples

QUICK = "idle_seconds = 60\nmin_free_mb = 0\ngrace_seconds = 6\n"
SOAK_SECONDS = float(os.environ.get("SOAK_SECONDS", 8))
KILLS = max(2, int(SOAK_SECONDS / 60))
HANDOVERS = max(1, int(SOAK_SECONDS / 150))
AGENTS_EACH_SECOND = 17
"""Of three requests each."""


def hosts(provider: Provider) -> dict[str, int]:
    return dict.fromkeys(("model.lab", "tools.lab"), provider.port)


@pytest.mark.gate
@pytest.mark.many
@pytest.mark.parametrize(
    ("tag", "count"), [("", examples(500)), (EVERYBODY, examples(100))], ids=["tasks", "one task"]
)
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


@pytest.mark.gate
@pytest.mark.timeout(300 + 2 * SOAK_SECONDS)
def test_kills_and_handovers_lose_nothing_that_an_agent_received(tmp_path: Path) -> None:
    async def run() -> tuple[Counter[str], Daemon, int, float]:
        async with serve_provider(delay=0.02) as provider, open_session() as session:
            with daemon(tmp_path, QUICK, hosts(provider)) as found:
                answers, broken, seconds = await soak(session, found)
                return answers, found, broken, seconds

    answers, found, broken, seconds = asyncio.run(run())
    recorded = count_by_tag(found.tapes())
    lost = {tag: (count, recorded[tag]) for tag, count in answers.items() if recorded[tag] < count}
    more = sum(recorded.values()) - sum(answers.values())
    print(  # noqa: T201 - the figures of a long soak
        f"{len(answers)} agents, {sum(answers.values())} answers received, {more} more recorded, "
        f"{len(lost)} agents with lost answers; "
        f"{KILLS} kills; {HANDOVERS} handovers, which cut {broken} agents; "
        f"{sum(answers.values()) / seconds:.1f} answers/s in {seconds:.0f} s"
    )
    assert lost == {}
    assert broken == 0, "a handover dropped a connection"


@pytest.mark.gate
def test_a_handover_ends_connections_with_an_answer_and_waits_for_those_under_way(
    tmp_path: Path,
) -> None:
    async def run() -> tuple[Daemon, Provider, list[str | None]]:
        async with serve_provider() as provider:
            with daemon(tmp_path, QUICK.replace("= 6", "= 0.5"), hosts(provider)) as found:
                idle, slow = Asker(found.port), Asker(found.port)
                closes = [await asyncio.to_thread(idle.ask, "idle")]
                held = provider.held = asyncio.Event()
                under_way = asyncio.create_task(asyncio.to_thread(slow.ask, "slow"))
                while provider.asked < 2:
                    await asyncio.sleep(0.02)
                found.signal(signal.SIGUSR2)
                await asyncio.to_thread(found.wait_for, "successor started")
                found.signal(signal.SIGUSR2)
                await asyncio.to_thread(found.wait_for, "recording on", 2)
                await asyncio.to_thread(found.wait_for, "no other successor is started")
                await asyncio.to_thread(wait_for_successor, found)
                await asyncio.sleep(1.0)  # longer than the grace
                held.set()
                closes += [await asyncio.to_thread(idle.ask, "idle2"), await under_way]
                closes.append(await asyncio.to_thread(idle.ask, "new"))
                for each in (idle, slow):
                    each.close()
                return found, provider, closes

    found, provider, closes = asyncio.run(run())
    assert closes == [None, "close", "close", None]
    assert count_by_tag(found.tapes()) == provider.seen
    assert provider.seen == dict.fromkeys(("idle", "idle2", "slow", "new"), 1)
    assert found.log.read_text().count("successor started") == 1


def wait_for_successor(found: Daemon) -> None:
    """Wait until the pages are those of a daemon that has recorded nothing."""
    while any(found.metric("exchanges_total") for _ in range(20)):
        time.sleep(0.02)
    assert found.page("readyz") == "ready\n"


@pytest.mark.gate
def test_a_successor_that_cannot_start_leaves_the_daemon_as_it_is(tmp_path: Path) -> None:
    async def run() -> tuple[int, Daemon]:
        async with serve_provider() as provider, open_session() as session:
            rules = QUICK.replace("= 6", "= 0.5")
            with daemon(tmp_path, rules, hosts(provider)) as found:
                (tmp_path / "rules.toml").write_text("sample = 'much'\n")
                found.signal(signal.SIGUSR2)
                await asyncio.to_thread(found.wait_for, "this daemon goes on")
                return await run_agent(session, found.proxy, "t"), found

    answers, found = asyncio.run(run())
    assert (answers, count_by_tag(found.tapes())) == (3, {"t": 3})


async def soak(session: object, found: Daemon) -> tuple[Counter[str], int, float]:
    """Run agents at a steady rate; hand over, then kill. Return answers, the agents before the
    kills that did not get all of theirs, and the seconds in which agents were started."""
    answers: Counter[str] = Counter()
    running: list[asyncio.Task[None]] = []
    spent: list[float] = []

    async def agent(tag: str) -> None:
        answers[tag] = await run_agent(session, found.proxy, tag)  # type: ignore[arg-type]

    async def run_for(seconds: float, name: str) -> None:
        began = time.monotonic()
        for number in range(round(seconds * AGENTS_EACH_SECOND)):
            await asyncio.sleep(began + number / AGENTS_EACH_SECOND - time.monotonic())
            running.append(asyncio.create_task(agent(f"{name}{number}")))
        spent.append(time.monotonic() - began)

    for number in range(HANDOVERS):
        await run_for(SOAK_SECONDS / 2 / HANDOVERS, f"h{number}x")
        found.hand_over()
        await run_for(SOAK_SECONDS / 4 / HANDOVERS, f"i{number}x")
        await asyncio.to_thread(found.wait_for, "recording on", number + 2)
    await asyncio.gather(*running)
    broken = sum(count != 3 for count in answers.values())
    await asyncio.to_thread(found.stop)
    await asyncio.to_thread(found.start)
    for number in range(KILLS):
        await run_for(SOAK_SECONDS / 4 / KILLS, f"k{number}x")
        found.kill()
        await asyncio.to_thread(found.start)
    await asyncio.gather(*running)
    return answers, broken, sum(spent)


@pytest.mark.gate
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


@pytest.mark.gate
@pytest.mark.parametrize("sent", [b"POST", b"POST http://model.lab/v1/chat/completions HTTP/1.1\r\n"
                                  b"host: model.lab\r\ncontent-length: 900\r\n\r\n{"],
                         ids=["head", "body"])  # fmt: skip
def test_a_client_that_never_ends_keeps_nobody_waiting(tmp_path: Path, sent: bytes) -> None:
    async def run() -> tuple[int, float, Daemon]:
        async with serve_provider() as provider, open_session() as session:
            with daemon(tmp_path, QUICK.replace("= 6", "= 0.5"), hosts(provider)) as found:
                endless = [socket.create_connection(("127.0.0.1", found.port)) for _ in range(50)]
                for each in endless:
                    each.sendall(sent)
                answers = await run_agent(session, found.proxy, "t")
                opened = found.metric("connections_open")
                found.signal(signal.SIGTERM)
                assert found.process is not None
                assert await asyncio.to_thread(found.process.wait, 30) == 0
                for each in endless:
                    each.close()
                return answers, opened, found

    answers, opened, found = asyncio.run(run())
    assert (answers, count_by_tag(found.tapes())) == (3, {"t": 3})
    assert opened >= 50
    assert "Traceback" not in found.log.read_text()


@pytest.mark.gate
def test_an_agent_that_restarts_begins_another_conversation(tmp_path: Path) -> None:
    async def run() -> Daemon:
        async with serve_provider() as provider, open_session() as session:
            with daemon(tmp_path, QUICK.replace("= 6", "= 0.5"), hosts(provider)) as found:
                for _ in range(3):  # the same prompt each time, at the same connection
                    assert await run_agent(session, found.proxy, EVERYBODY) == 3
                return found

    found = asyncio.run(run())
    assert sorted(count_by_tag(found.tapes()).values()) == [3, 3, 3]
    assert len(found.tapes()) == 3


@pytest.mark.gate
def test_a_provider_that_cannot_be_reached_is_seen_as_such_and_recorded(tmp_path: Path) -> None:
    port = free_port()

    async def run() -> tuple[list[int], Daemon]:
        async with open_session() as session:
            with daemon(
                tmp_path, QUICK.replace("= 6", "= 0.5"), hosts(Provider(port=port))
            ) as found:
                down = [await run_agent(session, found.proxy, f"down{n}") for n in range(3)]
                async with serve_provider(port):
                    return [*down, await run_agent(session, found.proxy, "up")], found

    answers, found = asyncio.run(run())
    assert answers == [0, 0, 0, 3]
    assert count_by_tag(found.tapes()) == {"up": 3}
    errors = [x.error for tape in found.tapes() for x in tape.exchanges if x.error]
    assert len(errors) == 3
    assert all(error.startswith("refused") for error in errors)


@pytest.mark.gate
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


@pytest.mark.gate
def test_a_disk_that_fills_up_harms_no_agent_and_no_tape(tmp_path: Path) -> None:
    rules = "min_free_mb = 0\ngrace_seconds = 0.5\nidle_seconds = 0.5\n"

    async def run(disk: SmallDisk) -> tuple[list[int], Daemon]:
        answers = []
        async with serve_provider() as provider, open_session() as session:
            with daemon(disk.folder, rules, hosts(provider)) as found:

                async def run_agents(name: str, count: int) -> None:
                    agents = (run_agent(session, found.proxy, f"{name}{n}") for n in range(count))
                    answers.extend(await asyncio.gather(*agents))

                await run_agents("before", 5)
                disk.fill(found.id)  # full in the midst of a conversation
                await run_agents("full", 20)
                while found.metric("conversations_open"):
                    await asyncio.sleep(0.1)
                assert found.metric("unrecorded_exchanges_total") > 20
                helpers = found.list_helpers()
                found.kill()
                await asyncio.to_thread(found.start)  # as a supervisor would
                assert helpers
                await asyncio.to_thread(wait_for_end, helpers)
                disk.fill(found.id)
                await run_agents("again", 5)
                assert found.metric("unrecorded_exchanges_total") == 15
                disk.free(found.id)
                await run_agents("after", 5)
                return answers, found

    with small_disk(tmp_path) as disk:
        answers, found = asyncio.run(run(disk))
        counts = count_by_tag(found.tapes())
        kept = (found.store / "daemon.tapes").read_text().split()
        assert answers == [3] * 35
        whole = {f"{name}{n}" for name in ("before", "after") for n in range(5)}
        assert {tag for tag, count in counts.items() if count == 3} >= whole
        assert set(kept) >= {path.name for path in found.store.glob("tapes/*.tape")}
        assert "Traceback" not in found.log.read_text()


@pytest.mark.gate
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
