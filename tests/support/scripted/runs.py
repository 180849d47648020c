"""Record, fork, inject and judge scripted agents, all in one process."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from faults.judging.judge import RunEvidence, judge_injection, to_run_evidence
from stumble.cli.options import parse_fault_options
from stumble.runs.fork import ForkPoint, find_fork_point, plan_fork_run
from stumble.runs.record import record_run
from stumble.runs.replay import run_replay
from stumble.runs.session import ReplaySession, open_replay_session
from stumble.runs.types import RecordPlan
from tests.support.scripted.client import ScriptedLaunch
from tests.support.scripted.data import ExpectedCase, ScriptedAgent, ScriptedTask, load_tasks
from tests.support.scripted.server import ScriptServer, script_server
from traces.conversation.derived_steps import derive_tape_steps
from traces.model import Condition, Outcome
from traces.tape.reader import Tape, read_tape


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCase:
    """The judge's verdicts on one case."""

    agent: ScriptedAgent
    case: ExpectedCase
    fault: str
    verdicts: tuple[Outcome, ...]
    """One per faulted run."""
    tapes: tuple[Path, ...] = ()

    @property
    def outcomes(self) -> tuple[str, ...]:
        return tuple(verdict.outcome or "unknown" for verdict in self.verdicts)

    @property
    def unknown(self) -> bool:
        """Whether a decidable verdict is missing."""
        return "unknown" in self.outcomes and "unknown" not in self.case.outcomes

    def mistakes(self) -> Iterator[str]:
        """Yield the differences from the required verdicts."""
        for verdict, outcome in zip(self.verdicts, self.outcomes, strict=True):
            if outcome not in self.case.outcomes:
                yield f"{outcome}, not {' or '.join(self.case.outcomes)}"
            for name in ("claim", "noticed", "false_failure"):
                wanted = getattr(self.case, name)
                if wanted is not None and (found := getattr(verdict, name, None)) != wanted:
                    yield f"{name} is {found}, not {wanted}"
        if not self.verdicts:
            yield "nothing was struck"

    def __str__(self) -> str:
        place = f"{self.fault} at {self.case.at}, {self.case.persist}"
        return (
            f"{self.agent.name} ({place}): {'; '.join(dict.fromkeys(self.mistakes())) or 'right'}"
        )


@dataclass(kw_only=True)
class ScriptStage:
    """The shared parts of all runs: the server of the scripts, and the proxy."""

    house: ReplaySession
    server: ScriptServer
    folder: Path
    ca: Path
    tasks: dict[str, ScriptedTask]
    twins: dict[tuple[object, ...], tuple[RunEvidence, ...]] = field(default_factory=dict)

    async def judge_agent(self, agent: ScriptedAgent) -> list[JudgedCase]:
        """Record the agent once, then inject and judge each of its cases."""
        self.server.serve(agent, self.tasks[agent.task])
        recording = await self._record(agent)
        return [await self._judge(agent, case, recording) for case in agent.cases]

    async def _record(self, agent: ScriptedAgent) -> Tape:
        path, self.server.coin = self.folder / f"{agent.name}.tape", agent.coin("clean", 0)
        await record_run(
            path,
            ScriptedLaunch(self.server, agent),
            RecordPlan(world=self.server.shop),
            id=agent.name,
            ca=self.ca,
            scratch=self.folder,
        )
        return read_tape(path)

    async def _judge(self, agent: ScriptedAgent, case: ExpectedCase, recording: Tape) -> JudgedCase:
        task = self.tasks[agent.task]
        text, where = case.fault or task.fault, (f"tool={case.where or task.where}",)
        fault = parse_fault_options(text, where, case.nth, (), case.persist, None, case.at)
        found = find_fork_point(recording, fault, derive_tape_steps(recording), seed=7)
        twins = await self._twins(agent, found)
        tapes = [await self._play(agent, found, "fault", rep) for rep in range(agent.times)]
        runs = [to_run_evidence(read_tape(path)) for path in tapes]
        injected = [each for each in runs if each.tape.injections]
        return JudgedCase(
            agent=agent,
            case=case,
            fault=text,
            verdicts=tuple(
                judge_injection(each.tape.injections[0], each, twins, lambda: runs)
                for each in injected
            ),
            tapes=tuple(tapes),
        )

    async def _twins(self, agent: ScriptedAgent, found: ForkPoint) -> tuple[RunEvidence, ...]:
        """Return the clean twins of a site, which are shared by all faults injected there.

        The same script with the same coin does the same again, so each coin is tossed once.
        """
        key = agent.name, found.site.call_id, found.site.place
        if key not in self.twins:
            coins = [agent.coin("clean", rep) for rep in range(agent.twins)]
            first = {coin: rep for rep, coin in reversed([*enumerate(coins)])}
            runs = {
                coin: to_run_evidence(read_tape(await self._play(agent, found, "clean", rep)))
                for coin, rep in first.items()
            }
            self.twins[key] = tuple(runs[coin] for coin in coins)
        return self.twins[key]

    async def _play(
        self, agent: ScriptedAgent, found: ForkPoint, condition: Condition, rep: int
    ) -> Path:
        self.server.coin = agent.coin(condition, rep)
        design = plan_fork_run(found, condition, world=self.server.shop, seed=7, rep=rep)
        launch = ScriptedLaunch(self.server, agent)
        played = await run_replay(self.house, found.recording, self.folder, design, launch)
        return played.path


async def judge_agents(agents: Iterable[ScriptedAgent], folder: Path) -> list[JudgedCase]:
    """Judge every case of these agents; tapes go into `folder`."""
    found: list[JudgedCase] = []
    async with (
        script_server() as server,
        open_replay_session(ca=folder / "ca", scratch=folder, hosts={}, out=True) as house,
    ):
        stage = ScriptStage(
            house=house, server=server, folder=folder, ca=folder / "ca", tasks=load_tasks()
        )
        for agent in agents:
            found += await stage.judge_agent(agent)
    return found


def run_scripted(agents: Iterable[ScriptedAgent], folder: Path) -> list[JudgedCase]:
    """Run `judge_agents` on a new event loop."""
    from recorder import event_loop

    (folder / "ca").mkdir(parents=True, exist_ok=True)
    return event_loop.run_event_loop(judge_agents(agents, folder))
