"""Where the runs of a campaign take place: the practice world, or the user's own."""

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from scenarios.file import Practice
from scenarios.practice import provider, server, world
from scenarios.practice.tasks import EVERY, TASKS
from scenarios.world import World
from stumble.campaigns.asked import Campaign, Source
from stumble.demo import PracticeWorld
from stumble.launch import Cold, Warm, WarmRun, warm
from stumble.runs import Hosts, Labels, Launch
from stumble.stagecraft import apart
from stumble.workspaces import Workspace
from stumble.worlds import WORKSPACE, by_command
from traces.store import Store
from traces.tape import Tape, read

PATIENCE = 5.0
"""Seconds that an agent gets to end once we are told to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Whose agent works, and in what world."""

    hosts: Hosts
    world: World | None
    launch: Launch
    labels: Labels
    workspace: Workspace | None = None


def own(
    campaign: Campaign,
    source: Source,
    recording: Tape | None,
    store: Store,
    labels: Labels,
    output: Path,
    slot: int = 0,
) -> Ground:
    """The user's agent in the user's world of this number; each run has a copy of the folder."""
    command, workspace = source.command, None
    if recording is not None:
        live = "after the strike the agent is live"
        workspace = apart(
            recording.trajectory, store, live=live, in_place=campaign.in_place, keep=False
        ).workspace
        command = command or recording.trajectory.command
    return Ground(
        hosts=campaign.hosts_of(slot),
        world=by_command(
            campaign.reset, campaign.verify, state=campaign.state, filled=campaign.filled(slot)
        ),
        launch=Cold(command=command, budget=campaign.budget, output=output, patience=PATIENCE),
        labels=labels if recording else replace(labels, task=source.name),
        workspace=workspace,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Practising:
    """A shop, a model server and a warm agent, for as many runs as are wanted."""

    campaign: Campaign
    folder: Path
    book: Path
    hosts: Hosts
    agent: Warm

    def ground(self, source: Source, practice: Practice, labels: Labels) -> Ground:
        """The practice world with the task of a source, and who works on it."""
        return Ground(
            hosts=self.hosts,
            world=PracticeWorld(self.book, practice.task, self.hosts),
            launch=self._launch(source, practice),
            labels=replace(
                labels,
                agent=self.campaign.agent if source.command else "practice",
                model=practice.model,
                task=source.name,
            ),
        )

    def _launch(self, source: Source, practice: Practice) -> Launch:
        budget, output = self.campaign.budget, self.folder / "agent.log"
        if source.command:
            words = {"task": practice.task, "model": practice.model}
            words["prompt"] = EVERY[practice.task].prompt
            command = tuple(_filled(word, words) for word in source.command)
            return Cold(command=command, budget=budget, output=output, patience=PATIENCE)
        local = ("--db", str(self.book)) if practice.tools == "local" else ()
        skill = ("--model", practice.model, "--max-steps", str(self.campaign.max_steps))
        argv = (practice.task, *skill, "--tools", practice.tools, *local)
        return WarmRun(
            process=self.agent,
            command=(sys.executable, "-m", "scenarios.practice.agent", *argv),
            argv=argv,
            output=output,
            budget=budget,
        )


def _filled(word: str, words: dict[str, str]) -> str:
    """A word of a command with `{task}`, `{model}` and `{prompt}` filled in."""
    for name, value in words.items():
        word = word.replace(f"{{{name}}}", value)
    return word


@asynccontextmanager
async def practising(campaign: Campaign, folder: Path) -> AsyncIterator[Practising]:
    """The practice world, with its agent warm; all of it ends with the block."""
    book, log = folder / "shop.db", None
    if campaign.log is not None:
        campaign.log.mkdir(parents=True, exist_ok=True)
        log = campaign.log / f"{folder.name}.jsonl"
    world.setup(book, next(iter(TASKS.values())))
    async with AsyncExitStack() as stack:
        ports = {
            "shop.practice": await stack.enter_async_context(server.serving(book)),
            "model.practice": await stack.enter_async_context(provider.serving(log=log)),
        }
        if any(each.practice and each.practice.tools == "mcp" for each in campaign.sources):
            from scenarios.practice import as_mcp

            ports["mcp.practice"] = await stack.enter_async_context(as_mcp.serving(book))
        served = {name: ("127.0.0.1", port) for name, port in ports.items()}
        yield Practising(
            campaign=campaign,
            folder=folder,
            book=book,
            hosts=served | dict(campaign.hosts),
            agent=await stack.enter_async_context(warm("scenarios.practice.agent")),
        )


def count_worlds(campaign: Campaign, store: Store) -> int | None:
    """How many runs of a campaign may go on at once; None if each has a world of its own.

    One that lies in the run's own copy of the folder says so by `{workspace}`.
    """
    own = [source for source in campaign.sources if not source.practice]
    if campaign.reset is None or not own:
        return None
    if WORKSPACE not in campaign.reset:
        return campaign.instances
    copies = all(
        source.tape is not None
        and apart(
            read(source.tape).trajectory, store, live="", in_place=campaign.in_place, keep=False
        ).workspace
        for source in own
    )
    return None if copies else 1
