"""The runs of `stumble selftest --provider`: each is made only if the limit allows one like it."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec import Struct, field

from faults.specs.spec_parser import parse_fault
from faults.targeting.bound_fault import bind_without_recording
from recorder.agent.isolation import find_missing_capabilities
from stumble.errors import signal_to_exit_code
from stumble.llm.model_choice import ModelChoice
from stumble.llm.prices import compute_token_cost
from stumble.runs.fork import find_fork_point, plan_fork_run
from stumble.runs.launcher import ColdLauncher
from stumble.runs.record import record_run
from stumble.runs.replay import run_replay
from stumble.runs.session import open_replay_session
from stumble.runs.types import RecordPlan, ReplayPlan, RunResult
from stumble.user_data.paths import new_trajectory_id
from traces.conversation.derived_steps import derive_tape_steps
from traces.tape.reader import Tape, read_tape

RUN_SECONDS = 120.0
_ORDER = {"tool": "get_order"}
FORKS = ("digit:field=amount", "tool_error:how=transient")
LIMIT_REACHED = "the limit of dollars would not allow another run"


class ProviderRun(Struct, frozen=True, kw_only=True):
    """One run; `tape` is None if it was not made, and `why` says why."""

    name: str
    result: RunResult | None = None
    tape: Tape | None = None
    printed: str = ""
    cost: float = 0.0
    why: str = ""


class ProviderRuns(Struct, kw_only=True):
    """A folder of its own, the model, the limit, and the runs so far."""

    folder: Path
    model: ModelChoice
    dollars: float
    say: Callable[[str], object]
    runs: list[ProviderRun] = field(default_factory=list)

    @property
    def spent(self) -> float:
        """Dollars of all runs so far, by the price list."""
        return sum(run.cost for run in self.runs)

    async def make_all(self) -> None:
        """Record, replay, fork twice, and inject one fault into a live run."""
        recorded = await self._make("record", self._record(""))
        if recorded.tape is None or recorded.printed == "" or not recorded.tape.exchanges:
            return
        tape = recorded.tape
        isolated = find_missing_capabilities().alone is None
        await self._make("strict replay", self._replay(tape, ReplayPlan(alone=isolated)))
        for text in FORKS:
            name = f"fork {text}"
            try:
                point = find_fork_point(tape, parse_fault({"fault": text, "where": _ORDER}))
            except LookupError as error:
                self.runs.append(ProviderRun(name=name, why=str(error.args[0])))
                continue
            plan = plan_fork_run(point, "fault", world=None, seed=7)
            await self._make(name, self._replay(tape, plan))
        await self._make("live fault", self._record("http_status:code=429,retry_after=1"))

    async def _make(self, name: str, run: Callable[[Path], Awaitable[RunResult]]) -> ProviderRun:
        """Make a run and keep what it cost."""
        dearest = max((each.cost for each in self.runs), default=0.0)
        if self.spent + dearest > self.dollars and name != "strict replay":
            made = ProviderRun(name=name, why=LIMIT_REACHED)
        else:
            self.say(name)
            log = self.folder / f"{len(self.runs)}.log"
            result = await run(log)
            if result.exit.signal is not None:
                raise SystemExit(signal_to_exit_code(result.exit.signal))
            tape = read_tape(result.path)
            made = ProviderRun(
                name=name,
                result=result,
                tape=tape,
                printed=log.read_text("utf-8", "replace").strip() if log.exists() else "",
                cost=sum_live_cost(tape, self.model.name),
            )
        self.runs.append(made)
        return made

    def _record(self, fault: str) -> Callable[[Path], Awaitable[RunResult]]:
        """Return a live run, with a fault of the model's first answer if one is given."""
        bound = parse_fault({"fault": fault, "at": "model"}) if fault else None
        plan = RecordPlan(armed=(bind_without_recording(bound),) if bound else ())

        async def run(log: Path) -> RunResult:
            id = new_trajectory_id()
            return await record_run(
                self.folder / f"{id}.tape",
                self._make_launcher(log),
                plan,
                id=id,
                ca=self.folder / "ca",
                scratch=self.folder / "scratch",
            )

        return run

    def _replay(self, tape: Tape, plan: ReplayPlan) -> Callable[[Path], Awaitable[RunResult]]:
        async def run(log: Path) -> RunResult:
            async with open_replay_session(
                ca=self.folder / "ca",
                scratch=self.folder / "scratch",
                hosts={},
                out=plan.fork is not None,
            ) as session:
                return await run_replay(session, tape, self.folder, plan, self._make_launcher(log))

        return run

    def _make_launcher(self, log: Path) -> ColdLauncher:
        module = "stumble.selftest.provider_agent"
        command = (sys.executable, "-m", module, str(self.model.provider), self.model.name)
        return ColdLauncher(command=command, budget=RUN_SECONDS, output=log)


def sum_live_cost(tape: Tape, model: str) -> float:
    """Return the dollars of a run's live answers; a model without a price has that of `model`."""
    live = {x.seq for x in tape.exchanges if x.answered_by == "live"}
    costs = [
        compute_token_cost(step.model or model, step.usage) or compute_token_cost(model, step.usage)
        for step in derive_tape_steps(tape).agent_steps
        if step.usage is not None and live.intersection(step.seqs)
    ]
    return sum(cost for cost in costs if cost is not None)
