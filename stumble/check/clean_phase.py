"""The clean runs of a check: what may be recorded, how often, and what that shows of the agent."""

import os
from itertools import chain

from faults.judging.judge import RunEvidence
from recorder.agent.agent_input import PipedInput, open_piped_input
from stumble.campaigns.completed_runs import find_completed_runs
from stumble.check.recordings import CleanRecorder, find_clean_runs
from stumble.check.setup import BudgetClock, CheckSetup
from stumble.check.touch import AgentTouch, find_touch
from stumble.doctor.static_checks import check_agent_program, check_agent_variables
from stumble.drift.control_replays import run_control_replays
from stumble.errors import UsageError
from stumble.runs.unseen_traffic import describe_connections
from stumble.runs.write_guard import WriteGuard
from stumble.store import index

RECORDINGS = 3
RECORDING_SHARE = 0.4
"""Most of the time, and of the dollars, that recordings may take."""
NOT_RESET = (
    "nothing is reset between runs: an agent may find what earlier runs left; --reset COMMAND "
    "makes all runs begin alike"
)


class CleanPhase:
    """Records each task, and replays it once; then says what the agent reached."""

    def __init__(self, setup: CheckSetup, clock: BudgetClock) -> None:
        self.setup, self._clock = setup, clock
        self.recordings: dict[str, tuple[RunEvidence, ...]] = {}
        """Clean runs by task, the first first."""
        self.touch = AgentTouch()
        self.notes: list[str] = []
        """Why nothing may be injected."""
        self.warnings: dict[str, None] = {}
        self._may_write = setup.yes or setup.live
        # Every run reads what was piped to this command; at a terminal there is nobody to answer.
        self._given = open_piped_input() or PipedInput()

    @property
    def runs(self) -> tuple[RunEvidence, ...]:
        """The clean runs of all tasks."""
        return tuple(chain.from_iterable(self.recordings.values()))

    @property
    def are_tools_live(self) -> bool:
        """Whether tools are reached for real after a fault."""
        return self.setup.live or bool(self.setup.world.reset) or not self.touch.written

    def record_tasks(self) -> None:
        """Record each task as often as there is time. Raises UsageError if that is refused."""
        setup = self.setup
        self._examine_commands()
        self.recordings |= find_clean_runs(setup.store, setup.name)
        recorder = CleanRecorder(
            name=setup.name,
            store=setup.store,
            ca=setup.ca,
            workspace=setup.workspace,
            world=setup.world,
        )
        for number in range(RECORDINGS):
            for task, command in setup.tasks.items():
                if len(self.recordings.get(task, ())) <= number and self._may_record(number):
                    self._record(recorder, task, command, number)
            if broken := self._find_broken():
                self.notes.append(_explain_broken(broken, recorder))
                return
        for task, runs in self.recordings.items():
            if not runs[0].tape.trajectory.rules and self._clock.left > setup.budget / 2:
                for line in run_control_replays(runs[0].tape.path, 1):
                    setup.report(f"{task}: {line}")

    def may_inject(self) -> bool:
        """Return whether there is anything to inject; otherwise the notes have the reason."""
        if not self.recordings or self.notes:
            return False
        self.touch = touch = find_touch(self.runs)
        self.setup.report(touch.describe())
        if not touch.models and not touch.written and not touch.read:
            self.notes.append(
                "no request of the agent was recorded; `stumble doctor -- COMMAND` shows why"
            )
        elif not any(run.story.tool_uses for run in self.runs):
            self.notes.append("the agent called no tool in its clean runs: nothing to inject into")
        else:
            self.setup.report(self._describe_reach())
        return not self.notes

    def _examine_commands(self) -> None:
        """Warn of what no recording of these commands would have."""
        found = chain(check_agent_variables(os.environ), *(
            check_agent_program(command, os.environ) for command in self.setup.tasks.values()
        ))  # fmt: skip
        for is_seen, text in found:
            if not is_seen and text not in self.warnings:
                self.warnings[text] = None
                self.setup.report(text)

    def _may_record(self, number: int) -> bool:
        """Return whether there is time, and whether it writes nothing that nobody resets."""
        if number == 0:
            return True
        setup = self.setup
        if setup.dollars is not None:
            index.refresh_index(setup.store)
            spent = find_completed_runs(setup.store, setup.name).cost
            if spent > RECORDING_SHARE * setup.dollars:
                return False
        return self.are_tools_live and self._clock.used < RECORDING_SHARE * setup.budget

    def _record(
        self, recorder: CleanRecorder, task: str, command: tuple[str, ...], number: int
    ) -> None:
        setup = self.setup
        setup.report(f"recording {number + 1} of {task}: the agent runs for real, in a copy")
        guard = None if self._may_write else WriteGuard()
        piped, left = self._given, max(1.0, self._clock.left)
        result = recorder.record(task, command, number, left, guard, piped)
        self._given = PipedInput(data=piped.to_agent_input().data)
        if result.exit.signal is not None:
            raise KeyboardInterrupt
        if guard is not None and guard.refused:
            self._ask(guard.refused)
            return self._record(recorder, task, command, number)
        unseen = describe_connections(result.attempts)
        self.warnings |= dict.fromkeys(
            f"not seen, and real in every run: {each}" for each in unseen
        )
        self.recordings |= find_clean_runs(setup.store, setup.name)
        self.touch = find_touch(self.runs)
        return None

    def _ask(self, write: str) -> None:
        """Ask whether a write outside of the copy may be made. Raises UsageError if not."""
        question = (
            f"the agent sends {write}, which is outside of its copy. Run it for real once, and "
            "answer this tool from the recording afterwards?"
        )
        if self.setup.confirm is not None and self.setup.confirm(question):
            self._may_write = True
            return
        raise UsageError(
            f"the agent sends {write}, which writes outside of its copy, and this was not made: "
            "give --yes to let it happen in one recording, from which the tool is answered then, "
            "or --live to let it happen in every run"
        )

    def _find_broken(self) -> tuple[RunEvidence, ...]:
        """Return the clean runs of a task that all fail, if they may not be made again."""
        for runs in self.recordings.values():
            if all(map(has_failed, runs)) and (len(runs) > 1 or not self._may_record(1)):
                return runs
        return ()

    def _describe_reach(self) -> str:
        if not self.touch.written:
            return "runs go on in copies of the folder; nothing outside of them is written"
        if self.are_tools_live and self.setup.world.reset:
            return f"runs go on for real: {self.touch.written_first} (reset before each run)"
        if self.are_tools_live:
            self.warnings[NOT_RESET] = None
            return f"runs go on for real: {self.touch.written_first} (not reset between runs)"
        return (
            "after a fault the model goes on for real, and tools are answered from the recording: "
            "a run that asks for anything else is unknown"
        )


def has_failed(run: RunEvidence) -> bool:
    """Return whether a run has no end, or a wrong one."""
    ending = run.tape.ending
    return ending is None or ending.ended != "final" or ending.passed is False


def _explain_broken(runs: tuple[RunEvidence, ...], recorder: CleanRecorder) -> str:
    ending, printed = runs[-1].tape.ending, recorder.read_last_output()
    code = ending.exit_code if ending else None
    last_words = f"; it last printed: {printed}" if printed else ""
    return (
        f"the agent fails without any fault: {len(runs)} of {len(runs)} clean runs "
        f"(exit code {code}){last_words}; nothing was injected"
    )
