"""The faulted runs of a check: each fault once, then three times, until the budget is used up."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from scenarios.toml_reader import ScenarioError
from stumble.campaigns.completed_runs import CampaignFolder
from stumble.campaigns.runner import CampaignDisplay, run_campaign_session
from stumble.campaigns.spec import parse_campaign
from stumble.campaigns.worker_plan import WorkerPlan
from stumble.check.behaviour import LEFT_RECORDING, MIN_CLEAN_RUNS
from stumble.check.clean_phase import CleanPhase
from stumble.check.fault_choice import ChosenFault, afford_faults, choose_faults
from stumble.check.findings import FaultCell
from stumble.check.setup import BudgetClock
from stumble.check.stored_runs import load_cells
from stumble.errors import UsageError
from stumble.processors import count_usable_processors
from stumble.runs.environment.worlds import FRESH_COPY_RESET

if TYPE_CHECKING:
    from stumble.campaigns.scheduler import CampaignProgress, ProgressListener

REPEATS = (1, 3)
"""Faulted runs of each fault after the first and the second round."""
MAX_JOBS = 4
RUN_OVERHEAD = 2.0
"""Seconds that a run takes beside its agent, about."""


class FaultPhase:
    """Injects the chosen faults into the recordings of the clean phase."""

    def __init__(self, clean: CleanPhase, clock: BudgetClock) -> None:
        self.setup, self._clean, self._clock = clean.setup, clean, clock
        self.left_out: tuple[str, ...] = ()
        self.chosen: tuple[ChosenFault, ...] = ()
        self.stopped_by = ""
        """`budget` or `money`; empty if all was done."""
        self._seconds = self._longest = 0.0
        """Mean and longest time of a clean run."""

    def inject(self) -> None:
        """Make the runs. Raises KeyboardInterrupt, and UsageError if the campaign is refused."""
        self._choose_faults()
        clean = [run.tape.ending.at for run in self._clean.runs if run.tape.ending]
        self._seconds, self._longest = sum(clean) / len(clean), max(clean)
        self.setup.report(self._describe_budget(len(self.chosen)))
        pending = self.chosen
        while pending and self._clock.left > 0 and not self.stopped_by:
            # Half of what is left is for the same faults again: one run shows, three decide.
            made = {key: len(cell.runs) for key, cell in self._load_cells().items()}
            batch = afford_faults(
                pending, self._count_runs() // 2, made, repeats=REPEATS[0], controls=MIN_CLEAN_RUNS
            )
            self._run_batch(list(batch))
            pending = tuple(each for each in pending if each not in batch)

    def _choose_faults(self) -> None:
        faults, left_out = dict[str, ChosenFault](), list[str]()
        for runs in self._clean.recordings.values():
            live = self._clean.are_tools_live
            choice = choose_faults(runs[0].tape, runs[0].story, live=live)
            faults |= {str(each): each for each in choice.faults}
            left_out += choice.left_out
        self.left_out, self.chosen = tuple(dict.fromkeys(left_out)), tuple(faults.values())

    def _run_batch(self, batch: list[ChosenFault]) -> None:
        """Make the runs of these faults, in rounds, the undecided ones first."""
        for repeats in REPEATS:
            cells = self._load_cells()
            batch = [each for each in batch if not self._is_settled(cells.get(each.key))]
            batch.sort(key=lambda each: _rank_undecided(cells.get(each.key)))
            if self._clock.left <= 0 or self.stopped_by or not batch:
                return
            self._run_round([each.table for each in batch], repeats)

    def _load_cells(self) -> Mapping[tuple[str, str], FaultCell]:
        cells = load_cells(self.setup.store, self.setup.name)
        return {(cell.tool, cell.fault): cell for cell in cells}

    def _is_settled(self, cell: FaultCell | None) -> bool:
        """Return whether no further run decides more: a request on no tape stays on none."""
        left = cell is not None and all(r.reason.startswith(LEFT_RECORDING) for r in cell.runs)
        return left and not self._clean.are_tools_live

    def _describe_budget(self, faults: int) -> str:
        runs, smallest = self._count_runs(), 2 * MIN_CLEAN_RUNS
        needed = MIN_CLEAN_RUNS + faults * REPEATS[-1]
        bought = f"a run takes about {self._seconds:.1f} s: {runs} runs are left in the budget"
        if runs >= needed:
            return f"{bought}, enough for {faults} faults three times"
        if runs >= smallest:
            return f"{bought}, of {needed} for {faults} faults three times; the worst come first"
        needed_seconds = (self._seconds + RUN_OVERHEAD) * smallest / self._count_jobs()
        more = math.ceil(needed_seconds + self._clock.used)
        return (
            f"{bought}; a verdict needs {MIN_CLEAN_RUNS} clean and {MIN_CLEAN_RUNS} faulted runs: "
            f"--budget {more} would do for one fault"
        )

    def _count_runs(self) -> int:
        """Return how many runs are left in the budget."""
        return max(0, int(self._clock.left / (self._seconds + RUN_OVERHEAD) * self._count_jobs()))

    def _count_jobs(self) -> int:
        shared = bool(self._clean.touch.written) and self._clean.are_tools_live
        return 1 if shared else min(MAX_JOBS, count_usable_processors())

    def _run_round(self, tables: Sequence[Mapping[str, object]], repeats: int) -> None:
        table, path = self._make_campaign_table(tables, repeats), Path.cwd() / "campaign"
        try:
            result = run_campaign_session(
                parse_campaign(table, path),
                self.setup.store,
                table,
                path,
                ca=self.setup.ca,
                workers=WorkerPlan(jobs=self._count_jobs()),
                display=CampaignDisplay(self._show_until_deadline, self.setup.report),
            )
        except (ScenarioError, UsageError) as error:
            raise UsageError(str(error).replace("max_cost", "--dollars")) from None
        if result.standing.capped:
            self.stopped_by = "money"
        if result.stopped is not None:
            if self._clock.left > 0:
                raise KeyboardInterrupt
            self.stopped_by = "budget"

    def _make_campaign_table(
        self, tables: Sequence[Mapping[str, object]], repeats: int
    ) -> dict[str, object]:
        setup = self.setup
        table: dict[str, object] = {
            "name": setup.name,
            "traces": [str(runs[0].tape.path) for runs in self._clean.recordings.values()],
            "faults": list(tables),
            "reps": repeats,
            "shams": 0,
            "budget": self._choose_run_limit(),
            "world": self._make_world_table(),
        }
        return table | ({} if setup.dollars is None else {"max_cost": setup.dollars})

    def _choose_run_limit(self) -> float:
        """Return the time limit of one run: that of the earlier sessions, if there are any."""
        plan = CampaignFolder.load_plan(self.setup.store, self.setup.name)
        limit = plan[0].get("budget") if plan else None
        return limit if isinstance(limit, float) else float(math.ceil(3 * self._longest + 30))

    def _make_world_table(self) -> dict[str, object]:
        world = self.setup.world
        if not self._clean.are_tools_live:
            if world.verify:
                self._clean.notes.append("--verify was not asked: tools answer from the recording")
            return {"observed": True}
        texts = {"verify": world.verify, "state": world.state}
        commands = {name: text for name, text in texts.items() if text}
        return {"reset": world.reset or FRESH_COPY_RESET, "observed": True} | commands

    @contextmanager
    def _show_until_deadline(self) -> "Iterator[ProgressListener]":
        """Show the progress of a campaign, and end it at the deadline."""
        with self.setup.show() as show_count:

            def show_in_time(now: "CampaignProgress") -> None:
                show_count(now)
                if self._clock.left <= 0:
                    raise KeyboardInterrupt

            yield show_in_time


def _rank_undecided(cell: FaultCell | None) -> int:
    """Rank a fault for the next round: weaknesses, then good ends, then what stays unknown."""
    if cell is None or cell.judged == 0:
        return 2
    return 0 if cell.good < cell.judged else 1
