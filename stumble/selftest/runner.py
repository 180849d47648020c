"""The runs of a self-test: recorded and forked live, then replayed with every server stopped."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from recorder.agent.isolation import find_missing_capabilities
from stumble.runs.fork import find_fork_point, plan_fork_run
from stumble.runs.types import ReplayPlan
from stumble.selftest import leak_scan
from stumble.selftest.fixture import SelftestFixture, SelftestRun
from stumble.store import index
from traces.conversation.classify import ExchangeKind
from traces.conversation.derived_steps import derive_tape_steps
from traces.model import Fault

SEED = 7
_ORDER = {"tool": "get_order"}
FAULTS = (
    Fault(name="digit", params={"field": "amount"}, where=_ORDER, at="http"),
    Fault(name="truncate", params={"keep": 0.6}, where=_ORDER, at="model-boundary"),
)
BROKEN = Fault(name="http_status", params={"code": 503}, at="http", persist="permanent")
_TOOLS: tuple[ExchangeKind, ...] = ("tool",)

type Say = Callable[[str], object]


class LiveRuns(Struct, frozen=True, kw_only=True):
    """Runs made while the servers were running."""

    errand: SelftestRun
    """Recording of a practice task."""
    whisper: SelftestRun
    """Recording of bytes at a known pace, and of secrets."""
    struck: tuple[SelftestRun, ...]
    """Forks of `errand`, one for each fault."""
    sham: SelftestRun
    """A fork of `errand` with a sham."""
    down: SelftestRun
    """A replay of `errand` with live tools that are stopped."""


class OfflineRuns(Struct, frozen=True, kw_only=True):
    """Runs made with the servers stopped."""

    errand: SelftestRun
    whisper: SelftestRun
    """Replayed at the recorded pace."""
    broken: SelftestRun
    """`errand` with 503 from every tool and the recorded model."""
    stray: SelftestRun
    """An agent with requests that `errand` does not contain."""
    came: int
    """Number of connections to the ports of the stopped servers."""
    open: str | None
    """Why isolation is unavailable on this machine, or None."""
    slip: SelftestRun | None
    """An agent that bypasses the proxy; None without isolation."""
    slipped: int
    """Number of its connections that succeeded."""


class SelftestEvidence(Struct, frozen=True, kw_only=True):
    """The evidence of a self-test."""

    live: LiveRuns
    still: OfflineRuns
    judged: int
    """Number of verdicts in the store on replays."""
    copies: Mapping[Path, int]
    """Number of copies of the canary secrets in each written file."""
    crossed: tuple[int, ...]
    """Number of copies of each secret in the agent's logs, which the search has to find."""


async def gather_selftest_evidence(folder: Path, say: Say) -> SelftestEvidence:
    """Make all runs in an empty folder; all processes have ended on return."""
    fixture = SelftestFixture(folder)
    live = await _make_live_runs(fixture, say)
    still = await _make_offline_runs(fixture, live, say)
    say("writing the index")
    index.refresh_index(fixture.store)
    say("looking for secrets")
    agent_notes = tuple(fixture.read_agent_notes())
    return SelftestEvidence(
        live=live,
        still=still,
        judged=fixture.count_replay_verdicts(),
        copies={
            path: _count_canary_copies(fixture, leak_scan.read_file_texts(path))
            for path in fixture.list_written_files()
        },
        crossed=tuple(
            leak_scan.count_secret_copies(secret, agent_notes) for secret in fixture.secrets.all
        ),
    )


def _count_canary_copies(at: SelftestFixture, texts: Iterable[bytes]) -> int:
    all_texts = tuple(texts)
    return sum(leak_scan.count_secret_copies(each, all_texts) for each in at.secrets.parts)


async def _make_live_runs(at: SelftestFixture, say: Say) -> LiveRuns:
    async with at.run_servers() as tools:
        say("recording")
        errand = await at.record_agent("errand", world=True)
        whisper = await at.record_agent("whisper")
        for run in (errand, whisper):
            if run.played.exit.code:
                words = run.printed.decode("utf-8", "replace").strip().splitlines() or ["nothing"]
                raise ChildProcessError(f"the agent could not be recorded, it said: {words[-1]}")
        steps = derive_tape_steps(errand.tape)
        points = [find_fork_point(errand.tape, fault, steps) for fault in FAULTS]
        plans = [plan_fork_run(each, "fault", world=at.world, seed=SEED) for each in points]
        sham = plan_fork_run(points[0], "sham", world=at.world, seed=SEED)
        async with at.open_session(out=True) as session:
            say("forking")
            runs = [
                await at.replay_agent(session, f"fork-{number}", errand, how, "errand")
                for number, how in enumerate((sham, *plans))
            ]
            say("replaying with live tools that are down")
            await tools.aclose()
            down = await at.replay_agent(session, "down", errand, ReplayPlan(live=_TOOLS), "errand")
    return LiveRuns(errand=errand, whisper=whisper, sham=runs[0], struck=tuple(runs[1:]), down=down)


async def _make_offline_runs(at: SelftestFixture, live: LiveRuns, say: Say) -> OfflineRuns:
    point = find_fork_point(live.errand.tape, BROKEN)
    obstacle = find_missing_capabilities().alone
    isolated = obstacle is None
    async with at.watch_stopped_ports() as connections, at.open_session(out=False) as session:
        say("replaying")
        recorded, whispered = live.errand, live.whisper
        plain, paced = ReplayPlan(alone=isolated), ReplayPlan(alone=isolated, speed=1)
        broken_plan = ReplayPlan(alone=isolated, injection_plan=point.injection_plan)
        errand = await at.replay_agent(session, "strict", recorded, plain, "errand")
        whisper = await at.replay_agent(session, "paced", whispered, paced, "whisper")
        broken = await at.replay_agent(session, "broken", recorded, broken_plan, "errand")
        stray = await at.replay_agent(session, "stray", recorded, plain, "stray")
        before = len(connections)
        slip = await at.replay_agent(session, "slip", recorded, plain, "slip") if isolated else None
    return OfflineRuns(
        errand=errand,
        whisper=whisper,
        broken=broken,
        stray=stray,
        came=before,
        open=obstacle,
        slip=slip,
        slipped=len(connections) - before,
    )
