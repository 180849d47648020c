"""`stumble shrink`: the smallest set of faults that still breaks a run."""

import glob
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from stumble import matching, options
from stumble.exits import Exits, Wrong, interrupted

if TYPE_CHECKING:
    from scenarios.world import World
    from stumble.forks import Branch, Continuation
    from stumble.launch import Cold
    from stumble.runs import Hosts, Played
    from stumble.shrinking import Faults, Shrinking
    from stumble.theatre import Theatre
    from stumble.workspaces import Workspace
    from traces.folder import Folder
    from traces.store import Store
    from traces.tape import Tape

PATIENCE = 5.0
"""Seconds that agents get to end once we are told to."""


@click.command(
    short_help="Find the fewest faults, as early as can be, that still break a run.",
    epilog="Exit codes: 0 shrunk, or as small as can be; 1 the agent breaks without any fault, "
    "3 diverged first, 5 the faults did not break the agent again.",
)
@click.argument("run", metavar="RUN")
@click.option(
    "--recording",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The recording that was forked, where the store does not have it.",
)
@click.option(
    "--times",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Runs per set of faults; more than half of them must break.",
)
@click.option(
    "--most",
    type=click.IntRange(1),
    default=40,
    show_default=True,
    help="Try no more sets than this.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write what is left as a scenario, for `stumble run`.",
)
@options.world_options
@options.workspace_options
@options.host_option
@options.budget_option(600.0)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@options.agent_command
def shrink(
    *,
    run: str,
    recording: Path | None,
    times: int,
    most: int,
    output: Path | None,
    reset: str | None,
    verify: str | None,
    state: str | None,
    in_place: bool,
    keep_workspace: bool,
    host_texts: tuple[str, ...],
    budget: float,
    as_json: bool,
    command: tuple[str, ...],
) -> None:
    """Run the agent without any fault first: if it fails then, no fault is to blame. Else take
    faults away from a faulted run until no single one can go, then let those that are left strike
    once, and earlier, as long as the end state is still wrong or the agent crashes. These runs
    enter no rate (condition shrink).

    RUN is the id of a run of `stumble fork`, or the beginning of one, or its tape. Each try forks
    the recording anew, so --reset and --verify are those of the fork.

    \b
    stumble shrink 20261121T2204 --reset "python reset_shop.py" --verify "python check_shop.py"
    stumble shrink a.tape -o smallest.toml --times 3 --reset ... --verify ... -- python my_agent.py
    """  # fmt: skip
    from recorder import loop
    from stumble import indexing
    from stumble.home import store_root
    from stumble.shrinking import Shrinking, faults_of
    from stumble.stagecraft import apart
    from stumble.tapes import load
    from stumble.worlds import by_command
    from traces.store import Store
    from traces.story import tell

    world = by_command(reset, verify, state=state)
    if world is None or verify is None:
        raise Wrong(
            "what breaks a run is its end state, and no twins are run here that --state could "
            "compare it with: say --reset and --verify"
        )
    if output is not None:
        options.check_new(output)
    store = Store(store_root())
    struck = load(_tape(store, run))
    parent = load(recording or _parent(store, struck))
    matching.check(parent.trajectory.rules, parent.path)
    command = options.checked(command or struck.trajectory.command)
    live = "after the strike the agent is live"
    set_apart = apart(parent.trajectory, store, live=live, in_place=in_place, keep=keep_workspace)
    forking = _Forking(
        recording=parent,
        store=store,
        world=world,
        workspace=set_apart.workspace,
        hosts=options.hosts(host_texts),
        command=command,
        budget=budget,
        seed=struck.trajectory.seed or 0,
        times=times,
    )
    with options.usage_errors():
        faults = faults_of(struck.injections, tell(struck))
        forking.branch(faults)
    if not faults:
        raise Wrong(f"{run} was struck by no fault")
    click.echo(set_apart.where(), err=True)
    shrinking = Shrinking(forking.breaks, most)

    async def work() -> "Faults | None":
        async with forking.theatre():
            if await forking.breaks_without(faults):
                return ()
            return await shrinking.shrink(faults) if await shrinking.broken(faults) else None

    try:
        with options.started(command):
            left = loop.run(work())
    except _Diverged as error:
        click.echo(f"diverged: {error}", err=True)
        raise SystemExit(Exits.DIVERGED) from None
    finally:
        indexing.refresh(store)
    if forking.signal is not None:
        raise SystemExit(interrupted(forking.signal))
    if output is not None and left:
        output.write_text(_scenario(run, left), encoding="utf-8")
    said = _said(run, faults, left, shrinking)
    click.echo(json.dumps(said) if as_json else "\n".join(_lines(left, shrinking, output, parent)))
    if left is None:
        raise SystemExit(Exits.NOT_ENOUGH)
    raise SystemExit(Exits.OK if left else Exits.FINDING)


class _Diverged(Exception):
    """The agent left the recording before the strike."""


@dataclass(slots=True, kw_only=True)
class _Forking:
    """Forks a recording with one set of faults after the other."""

    recording: "Tape"
    store: "Store"
    world: "World"
    workspace: "Workspace | None"
    hosts: "Hosts"
    command: tuple[str, ...]
    budget: float
    seed: int
    times: int
    signal: int | None = None
    house: "Theatre | None" = None
    tries: int = 0

    def branch(self, faults: "Faults") -> "Branch":
        """Where a set strikes first; LookupError or ValueError where it cannot."""
        from stumble.forks import branch

        return branch(self.recording, faults, seed=self.seed)

    @asynccontextmanager
    async def theatre(self) -> AsyncIterator[None]:
        """What all forks are played in."""
        from stumble.home import authority
        from stumble.theatre import theatre

        with TemporaryDirectory(prefix="stumble-") as scratch:
            async with theatre(
                ca=authority(), scratch=Path(scratch), hosts=self.hosts, out=True
            ) as self.house:
                yield

    async def breaks(self, faults: "Faults") -> bool:
        """Whether more than half of the runs end wrong; False where the set strikes nothing."""
        try:
            found = self.branch(faults)
        except LookupError as error:
            click.echo(f"  not tried: {error}", err=True)
            return False
        return await self._breaks(found, found.describe(), faulted=True)

    async def breaks_without(self, faults: "Faults") -> bool:
        """Whether more than half of the runs end wrong that nothing strikes at the same place."""
        return await self._breaks(self.branch(faults), "no fault at all", faulted=False)

    async def _breaks(self, found: "Branch", what: str, *, faulted: bool) -> bool:
        from stumble.forks import Design, Forked, fork

        self.tries += 1
        design = Design(
            found=found,
            twins=0 if faulted else self.times,
            times=self.times if faulted else 0,
            world=self.world,
            seed=self.seed,
            workspace=self.workspace,
            condition="shrink",
        )
        forked = Forked(wanted=design.continuations())
        assert self.house is not None
        await fork(self.house, design, forked, self._launch, self.store.tapes)
        for each in forked.runs:
            if each.diverged:
                raise _Diverged(each.diverged[0])
            self.signal = self.signal or each.exit.signal
        if self.signal is not None:
            raise SystemExit(interrupted(self.signal))
        broken = sum(_wrong(each) for each in forked.runs)
        how = f"{broken} of {self.times} broken"
        click.echo(f"  try {self.tries}: {what}: {how}", err=True)
        return 2 * broken > self.times

    def _launch(self, each: "Continuation") -> "Cold":
        from stumble.launch import Cold

        log = self.store.log(f"shrink-{self.tries}-{each.rep}")
        return Cold(command=self.command, budget=self.budget, output=log, patience=PATIENCE)


def _wrong(played: "Played") -> bool:
    from faults.judge import ENDINGS_FAILED

    return played.ending.passed is False or played.ending.ended in ENDINGS_FAILED


def _tape(store: "Folder", run: str) -> Path:
    """The tape of a run that is named by a path, its id or the beginning of that."""
    if Path(run).is_file():
        return Path(run)
    found = sorted(store.tapes.glob(f"{glob.escape(run)}*.tape"))
    if len(found) == 1:
        return found[0]
    if found:
        raise Wrong(f"{len(found)} runs begin with {run}, as {found[0].stem} and {found[1].stem}")
    raise Wrong(f"no run begins with {run}; `stumble sql forks` lists them")


def _parent(store: "Folder", struck: "Tape") -> Path:
    parent = struck.trajectory.parent
    if parent is None:
        raise Wrong(f"{struck.trajectory.id} is no fork, so there is nothing to fork anew")
    path = store.tapes / f"{parent}.tape"
    if not path.exists():
        raise Wrong(f"the store has no tape of {parent}, which was forked: say --recording")
    return path


def _said(
    run: str, faults: "Faults", left: "Faults | None", shrinking: "Shrinking"
) -> dict[str, object]:
    from stumble.shrinking import options as as_options

    return {
        "run": run,
        "faults": [as_options(each) for each in faults],
        "left": None if left is None else [as_options(each) for each in left],
        "tried": len(shrinking.asked),
        "spent": shrinking.spent,
    }


def _lines(
    left: "Faults | None", shrinking: "Shrinking", output: Path | None, parent: "Tape"
) -> Iterator[str]:
    from stumble.shrinking import options as as_options

    if left is None:
        yield "the faults of this run did not break the agent again; --times 5 asks it more often"
        return
    if not left:
        yield "0 faults left: the agent breaks without any fault, so no fault is to blame"
        return
    yield f"{_some(len(left), 'fault')} left after {_some(len(shrinking.asked), 'set')} tried:"
    yield from (f"  {as_options(each)}" for each in left)
    if shrinking.spent:
        yield "stopped at --most, so a smaller set may do as well"
    if output is not None:
        yield f"stumble run {output} --tape {parent.path} runs it again"


def _scenario(run: str, left: "Faults") -> str:
    from stumble.shrinking import table

    title = 'title = "The smallest set of faults that breaks a run"'
    about = f"What is left of the faults of {run}: without any one of them it does not break."
    return f'{title}\nabout = "{about}"\n\n{table(left)}'


def _some(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
