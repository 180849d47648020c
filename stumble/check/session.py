"""One session of a check: record, replay once, then inject until decided or at the budget.

All its runs are those of a campaign, which the next session, SQL, report and UI go on with.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from faults.judging.judge import RunEvidence
from recorder.agent.agent_input import PipedInput, open_piped_input
from scenarios.toml_reader import ScenarioError
from stumble.campaigns.completed_runs import CampaignFolder, find_completed_runs
from stumble.campaigns.runner import CampaignDisplay, run_campaign_session
from stumble.campaigns.spec import parse_campaign
from stumble.campaigns.worker_plan import WorkerPlan
from stumble.check.behaviour import LEFT_RECORDING, MIN_CLEAN_RUNS, FaultedRun, describe_run
from stumble.check.fault_choice import ChosenFault, afford_faults, choose_faults
from stumble.check.findings import FaultCell, build_cells
from stumble.check.recordings import CleanRecorder, find_clean_runs
from stumble.check.result import CheckResult
from stumble.check.touch import AgentTouch, find_touch
from stumble.drift.control_replays import run_control_replays
from stumble.errors import UsageError
from stumble.processors import count_usable_processors
from stumble.runs.environment.workspaces import RecordedWorkspace
from stumble.runs.environment.worlds import FRESH_COPY_RESET, WorldCommands
from stumble.runs.unseen_traffic import describe_connections
from stumble.runs.write_guard import WriteGuard
from stumble.store import index
from stumble.store.judged_rows import load_judged_injection
from traces.store.trace_store import TraceStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stumble.campaigns.scheduler import CampaignProgress, ProgressListener

RECORDINGS = 3
REPEATS = (1, 3)
"""Faulted runs of each fault after the first and the second round."""
RECORDING_SHARE = 0.4
"""Most of the time, and of the dollars, that recordings may take."""
MAX_JOBS = 4
MAX_NAMED = 4
"""Most faults named in a line."""
RUN_OVERHEAD = 2.0
"""Seconds that a run takes beside its agent, about."""


class CheckSetup(Struct, frozen=True, kw_only=True):
    """What is asked of a check."""

    name: str
    tasks: Mapping[str, tuple[str, ...]]
    """Commands of the agent by task."""
    store: TraceStore
    ca: Path
    workspace: RecordedWorkspace
    """The folder of the agent, of which each run gets a copy."""
    budget: float
    """Seconds for all."""
    dollars: float | None = None
    world: WorldCommands = WorldCommands()
    live: bool = False
    """Whether tools may be reached for real after a fault."""
    yes: bool = False
    """Whether the agent may be recorded although it writes outside of its copy."""
    confirm: Callable[[str], bool] | None = None
    """Asks the user; None if nobody can answer."""
    report: Callable[[str], object] = lambda line: None
    show: "Callable[[], AbstractContextManager[ProgressListener]]"


class CheckSession:
    """The state of one session; `run` returns what is known at its end."""

    def __init__(self, setup: CheckSetup) -> None:
        self.setup = setup
        self._began = time.monotonic()
        self._deadline = self._began + setup.budget
        self._recordings: dict[str, tuple[RunEvidence, ...]] = {}
        self._touch = AgentTouch()
        self._yes = setup.yes or setup.live
        self._notes: list[str] = []
        self._warnings: dict[str, None] = {}
        # Every run reads what was piped to this command; at a terminal there is nobody to answer.
        self._given = open_piped_input() or PipedInput()
        self._left_out: tuple[str, ...] = ()
        self._chosen: Sequence[ChosenFault] = ()
        self._interrupted = False
        self._stopped_by = ""

    def run(self) -> CheckResult:
        """Check the agent. Raises UsageError if it may not be run, or cannot be."""
        try:
            index.refresh_index(self.setup.store)
            self._record_tasks()
            if self._may_inject():
                self._inject()
        except KeyboardInterrupt:
            self._interrupted = True
        return self._build_result()

    @property
    def _tools_live(self) -> bool:
        return self.setup.live or bool(self.setup.world.reset) or not self._touch.written

    def _left(self) -> float:
        return self._deadline - time.monotonic()

    # Clean runs

    def _record_tasks(self) -> None:
        setup = self.setup
        self._recordings |= find_clean_runs(setup.store, setup.name)
        recorder = CleanRecorder(
            name=setup.name,
            store=setup.store,
            ca=setup.ca,
            workspace=setup.workspace,
            world=setup.world,
        )
        for number in range(RECORDINGS):
            for task, command in setup.tasks.items():
                if len(self._recordings.get(task, ())) <= number and self._may_record(number):
                    self._record(recorder, task, command, number)
            if self._is_broken():
                self._notes.append(self._explain_broken(recorder))
                return
        for task, runs in self._recordings.items():
            if not runs[0].tape.trajectory.rules and self._left() > setup.budget / 2:
                for line in run_control_replays(runs[0].tape.path, 1):
                    setup.report(f"{task}: {line}")

    def _may_record(self, number: int) -> bool:
        """Return whether there is time, and whether it writes nothing that nobody resets."""
        if number == 0:
            return True
        setup, used = self.setup, time.monotonic() - self._began
        if setup.dollars is not None:
            index.refresh_index(setup.store)
            spent = find_completed_runs(setup.store, setup.name).cost
            if spent > RECORDING_SHARE * setup.dollars:
                return False
        return self._tools_live and used < RECORDING_SHARE * setup.budget

    def _record(
        self, recorder: CleanRecorder, task: str, command: tuple[str, ...], number: int
    ) -> None:
        setup = self.setup
        setup.report(f"recording {number + 1} of {task}: the agent runs for real, in a copy")
        guard = None if self._yes else WriteGuard()
        piped = self._given
        result = recorder.record(task, command, number, max(1.0, self._left()), guard, piped)
        self._given = PipedInput(data=piped.to_agent_input().data)
        if result.exit.signal is not None:
            raise KeyboardInterrupt
        if guard is not None and guard.refused:
            self._ask(guard.refused)
            return self._record(recorder, task, command, number)
        unseen = describe_connections(result.attempts)
        self._warnings |= dict.fromkeys(
            f"not seen, and real in every run: {each}" for each in unseen
        )
        runs = find_clean_runs(setup.store, setup.name)
        self._recordings |= runs
        self._touch = find_touch(each for some in runs.values() for each in some)
        return None

    def _ask(self, write: str) -> None:
        """Ask whether a write outside of the copy may be made. Raises UsageError if not."""
        question = (
            f"the agent sends {write}, which is outside of its copy. Run it for real once, and "
            "answer this tool from the recording afterwards?"
        )
        if self.setup.confirm is not None and self.setup.confirm(question):
            self._yes = True
            return
        raise UsageError(
            f"the agent sends {write}, which writes outside of its copy, and this was not made: "
            "give --yes to let it happen in one recording, from which the tool is answered then, "
            "or --live to let it happen in every run"
        )

    def _is_broken(self) -> bool:
        """Return whether the clean runs of a task fail, as far as they may be repeated."""
        return any(
            all(_has_failed(each) for each in runs) and (len(runs) > 1 or not self._may_record(1))
            for runs in self._recordings.values()
        )

    def _explain_broken(self, recorder: CleanRecorder) -> str:
        runs = next(r for r in self._recordings.values() if all(map(_has_failed, r)))
        ending = runs[-1].tape.ending
        code = ending.exit_code if ending else None
        printed = recorder.read_last_output()
        last_words = f"; it last printed: {printed}" if printed else ""
        return (
            f"the agent fails without any fault: {len(runs)} of {len(runs)} clean runs "
            f"(exit code {code}){last_words}; nothing was injected"
        )

    def _may_inject(self) -> bool:
        """Return whether there is anything to inject; otherwise the notes have the reason."""
        if not self._recordings or self._notes:
            return False
        self._touch = find_touch(each for some in self._recordings.values() for each in some)
        self.setup.report(self._touch.describe())
        if not self._touch.models and not self._touch.written and not self._touch.read:
            self._notes.append(
                "no request of the agent was recorded; `stumble doctor -- COMMAND` shows why"
            )
            return False
        if not any(run.story.tool_uses for some in self._recordings.values() for run in some):
            self._notes.append("the agent called no tool in its clean runs: nothing to inject into")
            return False
        self.setup.report(self._describe_reach())
        return True

    def _describe_reach(self) -> str:
        if not self._touch.written:
            return "runs go on in copies of the folder; nothing outside of them is written"
        if self._tools_live:
            how = "reset before each run" if self.setup.world.reset else "not reset between runs"
            return f"runs go on for real: {self._touch.written_first} ({how})"
        return (
            "after a fault the model goes on for real, and tools are answered from the recording: "
            "a run that asks for anything else is unknown"
        )

    # Faults

    def _inject(self) -> None:
        pending = self._chosen = self._choose_faults()
        clean = [run.tape.ending.at for some in self._recordings.values() for run in some
                 if run.tape.ending]  # fmt: skip
        seconds = sum(clean) / len(clean)
        self.setup.report(self._describe_budget(seconds, len(pending)))
        while pending and self._left() > 0 and not self._stopped_by:
            # Half of what is left is for the same faults again: one run shows, three decide.
            made = {key: len(cell.runs) for key, cell in self._load_cells().items()}
            runs = self._count_runs(seconds) // 2
            batch = afford_faults(pending, runs, made, repeats=REPEATS[0], controls=MIN_CLEAN_RUNS)
            self._run_batch(list(batch), max(clean))
            pending = tuple(each for each in pending if each not in batch)

    def _run_batch(self, batch: list[ChosenFault], longest: float) -> None:
        """Make the runs of these faults, in rounds, the undecided ones first."""
        for repeats in REPEATS:
            cells = self._load_cells()
            batch = [each for each in batch if not self._is_settled(cells.get(each.key))]
            batch.sort(key=lambda each: _rank_undecided(cells.get(each.key)))
            if self._left() <= 0 or self._stopped_by or not batch:
                return
            self._run_round([each.table for each in batch], repeats, longest)

    def _load_cells(self) -> Mapping[tuple[str, str], FaultCell]:
        return {(cell.tool, cell.fault): cell for cell in build_cells(self._load_runs())}

    def _is_settled(self, cell: FaultCell | None) -> bool:
        """Return whether no further run decides more: a request on no tape stays on none."""
        left = cell is not None and all(r.reason.startswith(LEFT_RECORDING) for r in cell.runs)
        return left and not self._tools_live

    def _choose_faults(self) -> tuple[ChosenFault, ...]:
        faults, left_out = dict[str, ChosenFault](), list[str]()
        for runs in self._recordings.values():
            choice = choose_faults(runs[0].tape, runs[0].story, live=self._tools_live)
            faults |= {str(each): each for each in choice.faults}
            left_out += choice.left_out
        self._left_out = tuple(dict.fromkeys(left_out))
        return tuple(faults.values())

    def _describe_budget(self, seconds: float, faults: int) -> str:
        jobs, runs = self._count_jobs(), self._count_runs(seconds)
        needed = MIN_CLEAN_RUNS + faults * REPEATS[-1]
        smallest = 2 * MIN_CLEAN_RUNS
        bought = f"a run takes about {seconds:.1f} s: {runs} runs are left in the budget"
        if runs >= needed:
            return f"{bought}, enough for {faults} faults three times"
        if runs >= smallest:
            return f"{bought}, of {needed} for {faults} faults three times; the worst come first"
        needed_seconds = (seconds + RUN_OVERHEAD) * smallest / jobs
        more = math.ceil(needed_seconds + self.setup.budget - self._left())
        return (
            f"{bought}; a verdict needs {MIN_CLEAN_RUNS} clean and {MIN_CLEAN_RUNS} faulted runs: "
            f"--budget {more} would do for one fault"
        )

    def _count_runs(self, seconds: float) -> int:
        """Return how many runs of this length are left in the budget."""
        return max(0, int(self._left() / (seconds + RUN_OVERHEAD) * self._count_jobs()))

    def _count_jobs(self) -> int:
        shared = bool(self._touch.written) and self._tools_live
        return 1 if shared else min(MAX_JOBS, count_usable_processors())

    def _run_round(
        self, tables: Sequence[Mapping[str, object]], repeats: int, longest: float
    ) -> None:
        setup = self.setup
        table: dict[str, object] = {
            "name": setup.name,
            "traces": [str(runs[0].tape.path) for runs in self._recordings.values()],
            "faults": list(tables),
            "reps": repeats,
            "shams": 0,
            "budget": self._choose_run_limit(longest),
            "world": self._make_world_table(),
        }
        table |= {} if setup.dollars is None else {"max_cost": setup.dollars}
        path = Path.cwd() / "campaign"
        try:
            result = run_campaign_session(
                parse_campaign(table, path),
                setup.store,
                table,
                path,
                ca=setup.ca,
                workers=WorkerPlan(jobs=self._count_jobs()),
                display=CampaignDisplay(self._show_until_deadline, setup.report),
            )
        except (ScenarioError, UsageError) as error:
            raise UsageError(str(error).replace("max_cost", "--dollars")) from None
        if result.standing.capped:
            self._stopped_by = "money"
        if result.stopped is not None:
            if self._left() > 0:
                raise KeyboardInterrupt
            self._stopped_by = "budget"

    def _choose_run_limit(self, longest: float) -> float:
        """Return the time limit of one run: that of the earlier sessions, if there are any."""
        plan = CampaignFolder.load_plan(self.setup.store, self.setup.name)
        limit = plan[0].get("budget") if plan else None
        return limit if isinstance(limit, float) else float(math.ceil(3 * longest + 30))

    def _make_world_table(self) -> dict[str, object]:
        world = self.setup.world
        if not self._tools_live:
            if world.verify:
                self._notes.append("--verify was not asked: tools answer from the recording")
            return {"observed": True}
        texts = {"verify": world.verify, "state": world.state}
        commands = {name: text for name, text in texts.items() if text}
        return {"reset": world.reset or FRESH_COPY_RESET, "observed": True} | commands

    @contextmanager
    def _show_until_deadline(self) -> "Iterator[ProgressListener]":
        """Show the progress of a campaign, and end it at the deadline."""
        with self.setup.show() as show_count:

            def tell_in_time(now: "CampaignProgress") -> None:
                show_count(now)
                if self._left() <= 0:
                    raise KeyboardInterrupt

            yield tell_in_time

    # Results

    def _load_runs(self) -> list[FaultedRun]:
        store = self.setup.store
        with store.open_locked() as connection:
            rows = connection.execute(
                "SELECT trajectory_id, injection_id FROM injections"
                " JOIN trajectories USING (trajectory_id) WHERE campaign = $name"
                " AND condition = 'fault' AND repeat_of IS NULL ORDER BY recorded_at",
                {"name": self.setup.name},
            ).fetchall()
        return [describe_run(load_judged_injection(store, *row)) for row in rows]

    def _describe_unreached(self, cells: Sequence[FaultCell]) -> tuple[str, ...]:
        """Return a line about the chosen faults without a run, if there are any."""
        reached = {(cell.tool, cell.fault) for cell in cells}
        keys = [each.key for each in self._chosen if each.key not in reached]
        if not keys:
            return ()
        self._stopped_by = self._stopped_by or "budget"
        named = ", ".join(f"{fault} at {tool}" for tool, fault in keys[:MAX_NAMED])
        more = f" and {len(keys) - MAX_NAMED} more" if len(keys) > MAX_NAMED else ""
        return (f"before the end came: {named}{more}; the same command goes on with them",)

    def _count_clean(self) -> tuple[int, int]:
        """Return how many runs without a fault failed, and how many there are."""
        with self.setup.store.open_locked() as connection:
            rows = connection.execute(
                "SELECT count(*) FILTER (ended != 'final' OR NOT coalesce(passed, true)), count(*)"
                " FROM trajectories WHERE campaign = $name AND condition = 'clean'"
                " AND source IN ('record', 'fork') AND ended IN ('final', 'crash', 'budget')",
                {"name": self.setup.name},
            ).fetchall()
        failed, total = rows[0]
        return int(failed), int(total)

    def _build_result(self) -> CheckResult:
        index.refresh_index(self.setup.store)
        done = find_completed_runs(self.setup.store, self.setup.name)
        failed, clean = self._count_clean()
        cells = build_cells(self._load_runs())
        unreached = self._describe_unreached(cells)
        return CheckResult(
            name=self.setup.name,
            touch=self._touch,
            cells=cells,
            clean=clean,
            clean_failed=failed,
            left_out=(*unreached, *self._left_out),
            notes=tuple(self._notes),
            warnings=tuple(self._warnings),
            seconds=time.monotonic() - self._began,
            runs=len(done.runs) + sum(map(len, self._recordings.values())),
            cost=done.cost,
            stopped_by="Ctrl-C" if self._interrupted else self._stopped_by,
            tape=next((str(r[0].tape.path) for r in self._recordings.values()), None),
        )


def _has_failed(run: RunEvidence) -> bool:
    ending = run.tape.ending
    return ending is None or ending.ended != "final" or ending.passed is False


def _rank_undecided(cell: FaultCell | None) -> int:
    """Rank a fault for the next round: weaknesses, then good ends, then what stays unknown."""
    if cell is None or cell.judged == 0:
        return 2
    return 0 if cell.good < cell.judged else 1
