"""The driver: the command that a pipeline run records.

Stage by stage it starts the agent in the workspace, has what the agent left graded outside of it,
fills the stage's slot and tells all of it to the recorder. Where a stage fails, the golden
artifacts take the place of its own before the next one (resurrection): the agent is not told, and
the score stays what it was.
"""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import click

from recorder.marks import Teller, teller
from scenarios.agents.presets import preset
from scenarios.compiler.contract import Graded, Slot
from scenarios.sandbox.values import Sandbox
from stumble.exits import Failed
from stumble.pipeline.agent import Went, attempt
from stumble.pipeline.asked import WORKSPACE, Asked
from stumble.pipeline.grader import grade
from stumble.pipeline.kept import Kept
from stumble.pipeline.room import opened
from stumble.pipeline.workload import Workload, workload
from stumble.workspaces import COPY

type Facts = Mapping[str, object]

COSTS = ("calls", "tokens", "cost_usd", "seconds")


class Driver:
    """One run of the pipeline, from where its folder says that it is."""

    def __init__(self, folder: Path, asked: Asked, kept: Kept, told: Teller) -> None:
        self.folder, self.asked, self.kept, self.told = folder, asked, kept, told
        self.workspace = folder / WORKSPACE
        self.work: Workload = workload(asked.workload)
        self._anew = True
        """Whether a grade that is known of the same workspace is not to be taken."""
        self._over: str | None = None
        """The budget of the whole run that is used up."""

    async def drive(self) -> None:
        """Go through the stages that are not graded yet."""
        said = await self._tell("pipeline", self.asked.said())
        self._anew = bool(said["strict"])
        if said["run"] != self.kept.run and COPY not in os.environ:
            raise Failed(
                f"{self.folder} holds the run {self.kept.run}, and this one would write over it: "
                "a pipeline is replayed in a copy (leave --in-place out)"
            )
        if not self.kept.laid_out:
            bare = self.asked.mode == "autonomous"
            language = self.asked.language
            await asyncio.to_thread(self.work.lay_out, self.workspace, language, bare=bare)
            self.kept.laid_out = True
            self.kept.write()
        for stage in self.asked.stages:
            if stage not in self.kept.graded:
                await self._stage(stage)
            else:
                for name, data in self.kept.graded[stage]:
                    await self._tell(name, data)

    async def _tell(self, name: str, data: Facts) -> Facts:
        said = await self.told.tell(name, data)
        if self.asked.scope == "run":
            over = said.get("over")
            self._over = str(over) if over else None
        return said

    async def _stage(self, stage: str) -> None:
        """Let the agent work at a stage, if there is any budget left for it, and grade it."""
        given, over = self._given(stage), self._over
        began = await self._tell(
            "stage",
            {
                "stage": stage,
                "given": given.provenance,
                "attempted": over is None,
                "limits": dict(self.asked.limits),
                "scope": self.asked.scope,
            },
        )
        went = Went(exit=None, seconds=0.0, budget=over)
        if over is None and self.asked.agent:
            went = await self._attempt(stage, began)
        ended: Facts = {
            "stage": stage,
            "exit": went.exit,
            "budget": went.budget,
            "limit": went.limit,
            "seconds": went.seconds,
        }
        cost = await self._tell("agent", ended)
        if went.budget is not None:
            limit = self.asked.limits.get(went.budget)
            await self._tell("budget", {"stage": stage, "kind": went.budget, "limit": limit})
        costs = {name: cost[name] for name in COSTS}
        await self._grade(stage, given, {**costs, **ended, "attempted": over is None})

    async def _attempt(self, stage: str, began: Facts) -> Went:
        go_on = self.asked.mode == "progressive" and stage != self.asked.stages[0]
        task = self.work.task(self.workspace, stage, first=not go_on)
        start = preset(self.asked.agent).start(task, self.asked.model, go_on=go_on)
        left = began.get("left")
        _say(f"{stage}: the agent works")
        self.workspace.mkdir(exist_ok=True)
        async with opened(self.asked, self.folder, self.workspace, stage) as sandbox:
            went = await attempt(
                sandbox,
                start,
                log=self.folder / f"{stage}.log",
                teller=self.told,
                left=left if isinstance(left, int | float) else None,
            )
            await self._weaker(stage, sandbox)
        return went

    async def _weaker(self, stage: str, sandbox: Sandbox) -> None:
        if sandbox.weaker or sandbox.refused:
            data = {
                "stage": stage,
                "isolation": sandbox.isolation,
                "weaker": list(sandbox.weaker),
                "refused": dict(sandbox.refused),
            }
            await self._tell("sandbox", data)

    def _given(self, stage: str) -> Slot:
        """What a stage works on."""
        if stage in ("T0", "T1"):
            return self.work.source()
        before = f"T{int(stage[1:]) - 1}"
        own = self.kept.slot(before)
        return self.work.golden(before) if own is None or self.asked.arm == "from-golden" else own

    async def _grade(self, stage: str, given: Slot, spent: Facts) -> None:
        """Grade a stage, fill its slot, keep both, and only then tell it."""
        self.workspace.mkdir(exist_ok=True)
        graded = await asyncio.to_thread(
            grade,
            self.asked.workload,
            stage,
            self.workspace,
            given,
            jobs=self.asked.jobs,
            known=Path(self.asked.known),
            anew=self._anew or stage == "T0",  # which is about the machine
        )
        marks: list[tuple[str, Facts]] = [("graded", _said(graded))]
        left = graded.left
        if not graded.passed and self.asked.arm == "resurrect":
            left = self.work.golden(stage)
            reason = graded.result if spent["attempted"] else "not_attempted"
            fact = {"stage": stage, "reason": reason, "score": graded.score}
            marks.append(("resurrection", fact))
        self.kept.keep(left)
        self.kept.graded[stage] = [
            (name, {**(spent if name == "graded" else {}), **data, "before": True})
            for name, data in marks
        ]
        self.kept.write()
        for name, data in marks:
            await self._tell(name, data)
        score = "no score" if graded.score is None else f"{graded.score:.1f}"
        _say(f"{stage}: {score} ({graded.result}), given {graded.given}, {spent['calls']} calls")


def _said(graded: Graded) -> dict[str, object]:
    """A grade as its mark says it."""
    why = {case.case: case.why for case in graded.cases if case.result == "infrastructure_error"}
    return {
        "stage": graded.stage,
        "score": graded.score,
        "passed": graded.passed,
        "result": graded.result,
        "given": graded.given,
        "cases": {case.case: [case.result, case.score, case.reached] for case in graded.cases},
        "left": graded.left.sha256,
        "walls": list(graded.walls),
        "why": why,
    }


def _say(line: str) -> None:
    click.echo(f"pipeline: {line}", err=True)


async def drive(folder: Path) -> None:
    """Drive the run whose folder this is; Failed where nobody records it."""
    told = await teller()
    if told is None:
        raise Failed("nobody records this: `stumble pipeline run` starts it by itself")
    async with told:
        await Driver(folder, Asked.read(folder), Kept.read(folder), told).drive()
