"""Environment of the runs of a campaign: the practice world, or the user's agent and world."""

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from copy import replace
from pathlib import Path

from msgspec import Struct

from scenarios.pipeline.replay_check import Pipeline, find_passed_stages
from scenarios.practice import world
from scenarios.practice.served_world import serve_practice_world
from scenarios.practice.tasks.registry import ORDER_TASKS
from scenarios.practice.world import PracticeWorld
from scenarios.scenario import PracticeSettings
from stumble.campaigns.spec import Campaign, TraceSource
from stumble.packs.packed_snapshots import is_packed_snapshot
from stumble.runs.environment.recorded_program import use_recorded_program
from stumble.runs.environment.user_edits import find_user_edits
from stumble.runs.environment.workspaces import RecordedWorkspace, format_first_names
from stumble.runs.environment.worlds import WORKSPACE_SLOT, WorldCommands
from stumble.runs.isolation import WorkspaceChoice, plan_isolation
from stumble.runs.launcher import ColdLauncher, WarmAgentProcess, WarmLauncher, start_warm_agent
from stumble.runs.scenario_runner import fill_practice_command
from stumble.runs.types import AgentLauncher, Hosts, RunEnvironment, RunLabels
from traces.store.trace_store import TraceStore
from traces.tape.reader import Tape, read_tape

AGENT_STOP_SECONDS = 5.0
"""Seconds that an agent gets to end after a stop signal."""


def build_own_environment(
    campaign: Campaign,
    source: TraceSource,
    recording: Tape | None,
    store: TraceStore,
    labels: RunLabels,
    output: Path,
    slot: int = 0,
) -> RunEnvironment:
    """Build the environment of the user's agent in the world of this slot.

    Each run gets a copy of the recorded folder.
    """
    command, workspace = source.command, find_own_workspace(campaign, source, recording, store)
    if recording is not None:
        command = command or use_recorded_program(recording.trajectory)
    commands = WorldCommands(
        campaign.reset,
        campaign.verify,
        campaign.state,
        campaign.ledger,
        ",".join(campaign.ledger_key) or None,
    )
    launcher = ColdLauncher(
        command=command, budget=campaign.budget, output=output, patience=AGENT_STOP_SECONDS
    )
    world = commands.make_world(filled=campaign.placeholder_values(slot))
    if world is None and recording is not None and recording.marks:
        world = Pipeline(find_passed_stages(recording.marks))
    return RunEnvironment(
        hosts=campaign.hosts_in_slot(slot),
        world=world,
        launch=lambda name: launcher,
        labels=labels if recording else replace(labels, task=source.name),
        workspace=workspace,
        trust=campaign.trust,
    )


def find_own_workspace(
    campaign: Campaign, source: TraceSource, recording: Tape | None, store: TraceStore
) -> RecordedWorkspace | None:
    """Find the workspace to copy for each run of a user's agent; None with `in_place`.

    None too while recording, and for the practice agent, which uses no files of the user.
    Raises UsageError if the recording has no snapshot.
    """
    if recording is None or (source.practice and not source.command):
        return None
    live = "after the fault the agent is live"
    return plan_isolation(
        recording.trajectory,
        store,
        # Edits of the user would separate runs from twins.
        WorkspaceChoice(
            in_place=campaign.in_place,
            as_recorded=not campaign.in_place,
            writable=campaign.writable,
        ),
        live=live,
    ).workspace


class PracticeEnvironment(Struct, frozen=True, kw_only=True):
    """A tool server, a model server and a warm agent, for any number of runs."""

    campaign: Campaign
    folder: Path
    book: Path
    hosts: Hosts
    agent: WarmAgentProcess

    def make_environment(
        self, source: TraceSource, practice: PracticeSettings, labels: RunLabels
    ) -> RunEnvironment:
        """Return the practice world with the task of a source, and its agent."""
        launcher = self._make_launcher(source, practice)
        own_agent = source.command or (self.campaign.agent and self.campaign.agent_options)
        return RunEnvironment(
            hosts=self.hosts,
            world=PracticeWorld(self.book, practice.task, self.hosts),
            launch=lambda name: launcher,
            labels=replace(
                labels,
                agent=self.campaign.agent if own_agent else "practice",
                model=practice.model,
                task=source.name,
            ),
        )

    def _make_launcher(self, source: TraceSource, practice: PracticeSettings) -> AgentLauncher:
        budget, output = self.campaign.budget, self.folder / "agent.log"
        if source.command:
            command = fill_practice_command(source.command, practice)
            return ColdLauncher(
                command=command, budget=budget, output=output, patience=AGENT_STOP_SECONDS
            )
        local = ("--db", str(self.book)) if practice.tools == "local" else ()
        skill = ("--model", practice.model, "--max-steps", str(self.campaign.max_steps))
        argv = (
            *(practice.task, *skill, "--tools", practice.tools, *local),
            *self.campaign.agent_options,
        )
        return WarmLauncher(
            process=self.agent,
            command=(sys.executable, "-m", "scenarios.practice.agents.openai_agent", *argv),
            argv=argv,
            output=output,
            budget=budget,
        )


@asynccontextmanager
async def open_practice_environment(
    campaign: Campaign, folder: Path
) -> AsyncIterator[PracticeEnvironment]:
    """Start the servers of the practice world and a warm agent; stop them after the block."""
    book, log = folder / "shop.db", None
    if campaign.log is not None:
        campaign.log.mkdir(parents=True, exist_ok=True)
        log = campaign.log / f"{folder.name}.jsonl"
    world.set_up_order_book(book, next(iter(ORDER_TASKS.values())))
    mcp = any(each.practice and each.practice.tools == "mcp" for each in campaign.sources)
    async with (
        serve_practice_world(book, mcp=mcp, log=log) as served,
        start_warm_agent("scenarios.practice.agents.openai_agent") as agent,
    ):
        yield PracticeEnvironment(
            campaign=campaign,
            folder=folder,
            book=book,
            hosts=served | dict(campaign.hosts),
            agent=agent,
        )


def check_workspaces(campaign: Campaign, store: TraceStore) -> Iterator[str]:
    """Warn of edits since the recordings. Raises UsageError if a workspace cannot be copied."""
    for source in campaign.sources:
        if source.tape is None:
            continue
        recording = read_tape(source.tape)
        workspace = find_own_workspace(campaign, source, recording, store)
        if workspace is not None and not is_packed_snapshot(workspace.blobs, workspace.snapshot):
            edits = find_user_edits(recording.trajectory, store, workspace.manifest)
            if edits.names:
                yield (
                    f"{source.tape}: {format_first_names(edits.names)} "
                    f"changed since; the runs of a campaign "
                    "use the folder as it was recorded"
                )


def count_worlds(campaign: Campaign, store: TraceStore) -> int | None:
    """Count the runs that may go on at once; None if each has a separate world.

    A world inside the run's copy of the folder has `{workspace}` in its reset command.
    """
    user_sources = [source for source in campaign.sources if not source.practice]
    if campaign.reset is None or not user_sources:
        return None
    if WORKSPACE_SLOT not in campaign.reset:
        return campaign.instances
    all_copied = all(
        source.tape is not None
        and find_own_workspace(campaign, source, read_tape(source.tape), store)
        for source in user_sources
    )
    return None if all_copied else 1
