"""Scripted agents recorded, forked, struck and judged: all in one process."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from faults.judge import Run, judge, run
from stumble.forks import Branch, branch, plan
from stumble.options import read_fault
from stumble.playing import play
from stumble.recording import record
from stumble.theatre import Theatre, theatre
from tests.support.scripted.client import ScriptedLaunch
from tests.support.scripted.data import ExpectedCase, ScriptedAgent, ScriptedTask, load_tasks
from tests.support.scripted.server import ScriptServer, script_server
from traces.model import Condition, Outcome
from traces.story import tell
from traces.tape import Tape, read


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCase:
    """What the judge says of one case."""

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
        """Whether what could have been told was not."""
        return "unknown" in self.outcomes and "unknown" not in self.case.outcomes

    def mistakes(self) -> Iterator[str]:
        """What differs from what it must be."""
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
    """What all runs share: the server of the scripts, and the proxy."""

    house: Theatre
    server: ScriptServer
    folder: Path
    ca: Path
    tasks: dict[str, ScriptedTask]
    twins: dict[tuple[object, ...], tuple[Run, ...]] = field(default_factory=dict)

    async def judge_agent(self, agent: ScriptedAgent) -> list[JudgedCase]:
        """Record the agent once, then strike and judge each of its cases."""
        self.server.serve(agent, self.tasks[agent.task])
        recording = await self._record(agent)
        return [await self._judge(agent, case, recording) for case in agent.cases]

    async def _record(self, agent: ScriptedAgent) -> Tape:
        path, self.server.coin = self.folder / f"{agent.name}.tape", agent.coin("clean", 0)
        await record(
            path,
            ScriptedLaunch(self.server, agent),
            id=agent.name,
            ca=self.ca,
            scratch=self.folder,
            world=self.server.shop,
        )
        return read(path)

    async def _judge(self, agent: ScriptedAgent, case: ExpectedCase, recording: Tape) -> JudgedCase:
        task = self.tasks[agent.task]
        text, where = case.fault or task.fault, (f"tool={case.where or task.where}",)
        fault = read_fault(text, where, case.nth, (), case.persist, None, case.at)
        found = branch(recording, fault, tell(recording), seed=7)
        twins = await self._twins(agent, found)
        tapes = [await self._play(agent, found, "fault", rep) for rep in range(agent.times)]
        runs = [run(read(path)) for path in tapes]
        struck = [each for each in runs if each.tape.injections]
        return JudgedCase(
            agent=agent,
            case=case,
            fault=text,
            verdicts=tuple(
                judge(each.tape.injections[0], each, twins, lambda: runs) for each in struck
            ),
            tapes=tuple(tapes),
        )

    async def _twins(self, agent: ScriptedAgent, found: Branch) -> tuple[Run, ...]:
        """The clean twins of a site: what strikes there later does not matter to them."""
        key = agent.name, found.site.call_id, found.site.place
        if key not in self.twins:
            paths = [await self._play(agent, found, "clean", rep) for rep in range(agent.twins)]
            self.twins[key] = tuple(run(read(path)) for path in paths)
        return self.twins[key]

    async def _play(
        self, agent: ScriptedAgent, found: Branch, condition: Condition, rep: int
    ) -> Path:
        self.server.coin = agent.coin(condition, rep)
        design = plan(found, condition, world=self.server.shop, seed=7, rep=rep)
        launch = ScriptedLaunch(self.server, agent)
        played = await play(self.house, found.recording, self.folder, design, launch)
        return played.path


async def judge_agents(agents: Iterable[ScriptedAgent], folder: Path) -> list[JudgedCase]:
    """Every case of these agents; tapes go into `folder`."""
    found: list[JudgedCase] = []
    async with (
        script_server() as server,
        theatre(ca=folder / "ca", scratch=folder, hosts={}, out=True) as house,
    ):
        stage = ScriptStage(
            house=house, server=server, folder=folder, ca=folder / "ca", tasks=load_tasks()
        )
        for agent in agents:
            found += await stage.judge_agent(agent)
    return found


def run_scripted(agents: Iterable[ScriptedAgent], folder: Path) -> list[JudgedCase]:
    """As `judge_agents`, on an event loop of its own."""
    from recorder import loop

    (folder / "ca").mkdir(parents=True, exist_ok=True)
    return loop.run(judge_agents(agents, folder))
