"""The runs of a self-test: recorded and forked live, then replayed with every server stopped."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from recorder.cage import lacks
from stumble import indexing, leaks
from stumble.forks import branch, plan
from stumble.rehearsal import Rehearsal, Run
from stumble.runs import Plan
from traces.kind import Kind
from traces.model import Fault
from traces.story import tell

SEED = 7
_ORDER = {"tool": "get_order"}
FAULTS = (
    Fault(name="digit", params={"field": "amount"}, where=_ORDER, at="http"),
    Fault(name="truncate", params={"keep": 0.6}, where=_ORDER, at="model-boundary"),
)
BROKEN = Fault(name="http_status", params={"code": 503}, at="http", persist="permanent")
_TOOLS: tuple[Kind, ...] = ("tool",)

type Say = Callable[[str], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """What was done while servers were there."""

    errand: Run
    """Recorded: a task of the shop."""
    whisper: Run
    """Recorded: bytes at a known pace, and secrets."""
    struck: tuple[Run, ...]
    """Forks of the errand, one for each fault."""
    sham: Run
    """A fork of the errand that is struck by nothing."""
    down: Run
    """A replay of the errand with live tools, which were stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Still:
    """What was done when they were stopped."""

    errand: Run
    whisper: Run
    """At the recorded pace."""
    broken: Run
    """The errand, where every tool says 503 and the model is recorded."""
    stray: Run
    """An agent that asks for what the errand does not hold."""
    came: int
    """Connections to where the servers had been."""
    open: str | None
    """Why an agent cannot be alone with us on this machine."""
    slip: Run | None
    """An agent that asks past the proxy, where it can be alone."""
    slipped: int
    """Connections that it got."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that a self-test has to go by."""

    live: Live
    still: Still
    judged: int
    """Verdicts in the store of runs that are no forks."""
    copies: Mapping[Path, int]
    """Copies of the planted secrets in each file that we wrote."""
    crossed: tuple[int, ...]
    """Copies of each in what the agent noted: the search has to find these."""


async def gather(folder: Path, say: Say) -> Evidence:
    """Make all runs in an empty folder; what was started has ended when this returns."""
    at = Rehearsal(folder)
    live = await _live(at, say)
    still = await _still(at, live, say)
    say("writing the index")
    indexing.refresh(at.store)
    say("looking for secrets")
    said = tuple(at.noted())
    return Evidence(
        live=live,
        still=still,
        judged=at.judged(),
        copies={path: _copies(at, leaks.texts(path)) for path in at.written()},
        crossed=tuple(leaks.copies(secret, said) for secret in at.secrets.all),
    )


def _copies(at: Rehearsal, texts: Iterable[bytes]) -> int:
    held = tuple(texts)
    return sum(leaks.copies(each, held) for each in at.secrets.parts)


async def _live(at: Rehearsal, say: Say) -> Live:
    async with at.served() as tools:
        say("recording")
        errand = await at.record("errand", world=True)
        whisper = await at.record("whisper")
        for run in (errand, whisper):
            if run.played.exit.code:
                words = run.printed.decode("utf-8", "replace").strip().splitlines() or ["nothing"]
                raise ChildProcessError(f"the agent could not be recorded, it said: {words[-1]}")
        told = tell(errand.tape)
        found = [branch(errand.tape, fault, told) for fault in FAULTS]
        plans = [plan(each, "fault", world=at.world, seed=SEED) for each in found]
        sham = plan(found[0], "sham", world=at.world, seed=SEED)
        async with at.theatre(out=True) as house:
            say("forking")
            runs = [
                await at.play(house, f"fork-{number}", errand, how, "errand")
                for number, how in enumerate((sham, *plans))
            ]
            say("replaying with live tools that are down")
            await tools.aclose()
            down = await at.play(house, "down", errand, Plan(live=_TOOLS), "errand")
    return Live(errand=errand, whisper=whisper, sham=runs[0], struck=tuple(runs[1:]), down=down)


async def _still(at: Rehearsal, live: Live, say: Say) -> Still:
    found = branch(live.errand.tape, BROKEN)
    open = lacks().alone
    alone = open is None
    async with at.stopped() as came, at.theatre(out=False) as house:
        say("replaying")
        recorded, whispered = live.errand, live.whisper
        plain, paced = Plan(alone=alone), Plan(alone=alone, speed=1)
        struck = Plan(alone=alone, strike=found.strike)
        errand = await at.play(house, "strict", recorded, plain, "errand")
        whisper = await at.play(house, "paced", whispered, paced, "whisper")
        broken = await at.play(house, "broken", recorded, struck, "errand")
        stray = await at.play(house, "stray", recorded, plain, "stray")
        before = len(came)
        slip = await at.play(house, "slip", recorded, plain, "slip") if alone else None
    return Still(
        errand=errand,
        whisper=whisper,
        broken=broken,
        stray=stray,
        came=before,
        open=open,
        slip=slip,
        slipped=len(came) - before,
    )
