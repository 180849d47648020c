"""The driver: the command that a pipeline run records.

Stage by stage it starts the agent in the workspace, has what the agent left graded outside of it,
fills the stage's slot and tells all of it to the recorder. Where a stage fails, the golden
artifacts take the place of its own before the next one (resurrection): the agent is not told, and
the score stays what it was.
"""

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from recorder.marks import Teller, teller
from scenarios.compiler.contract import Graded, Slot
from stumble.exits import Failed
from stumble.pipeline.agent import Went, filled, started
from stumble.pipeline.asked import WORKSPACE, Asked
from stumble.pipeline.grader import grade
from stumble.pipeline.kept import Kept
from stumble.pipeline.workload import Workload, workload
from stumble.workspaces import COPY


class Driver:
    """One run of the pipeline, from where its folder says that it is."""

    def __init__(self, folder: Path, asked: Asked, kept: Kept, told: Teller) -> None:
        self.folder, self.asked, self.kept, self.told = folder, asked, kept, told
        self.workspace = folder / WORKSPACE
        self.work: Workload = workload(asked.workload)
        self._over: str | None = None
        """The budget of the whole run that is used up."""

    async def drive(self) -> int:
        """Go through the stages; the exit code."""
        said = await self.told.tell("pipeline", self.asked.said())
        if said["run"] != self.kept.run and COPY not in os.environ:
            raise Failed(
                f"{self.folder} holds the run {self.kept.run}, and this one would write over it: "
                "a pipeline is replayed in a copy (leave --in-place out)"
            )
        if not self.kept.laid_out:
            bare = self.asked.mode == "autonomous"
            await asyncio.to_thread(
                self.work.lay_out, self.workspace, self.asked.language, bare=bare
            )
            self.kept.laid_out = True
            self.kept.write()
        for stage in self.asked.stages:
            if stage in self.kept.graded:
                for name, data in self.kept.graded[stage]:
                    await self._tell(name, data)
            else:
                went = await self._attempt(stage)
                if went is not None and went.signal is not None:
                    return 128 + went.signal
                await self._grade(stage, went)
        return 0

    async def _tell(self, name: str, data: Mapping[str, object]) -> Mapping[str, object]:
        said = await self.told.tell(name, data)
        if self.asked.scope == "run" and name in ("agent", "graded"):
            over = said.get("over")
            self._over = str(over) if over else None
        return said

    async def _attempt(self, stage: str) -> Went | None:
        """Let the agent work at a stage; None where no budget is left for it."""
        began = {
            "stage": stage,
            "given": self._given(stage).provenance,
            "attempted": self._over is None,
            "limits": dict(self.asked.limits),
            "scope": self.asked.scope,
        }
        said = await self._tell("stage", began)
        if self._over is not None:
            await self._tell("agent", {"stage": stage, "exit": None, "budget": self._over})
            return None
        left = said.get("left")
        task = self.work.task(self.workspace, stage)
        words = {
            "task": task,
            "stage": stage,
            "workspace": str(self.workspace),
            "model": self.asked.model or "",
        }
        _say(f"{stage}: the agent works")
        went = await started(
            filled(self.asked.agent, words),
            cwd=self.workspace,
            env={"STUMBLE_STAGE": stage, "PWD": str(self.workspace)},
            log=self.folder / f"{stage}.log",
            teller=self.told,
            left=left if isinstance(left, int | float) else None,
        )
        await self._tell(
            "agent",
            {"stage": stage, "exit": went.exit, "budget": went.budget, "seconds": went.seconds},
        )
        if went.budget is not None:
            limit = self.asked.limits.get(went.budget)
            await self._tell("budget", {"stage": stage, "kind": went.budget, "limit": limit})
        return went

    def _given(self, stage: str) -> Slot:
        """What a stage works on."""
        before = f"T{int(stage[1:]) - 1}"
        if stage in ("T0", "T1"):
            return self.work.source()
        own = self.kept.slot(before)
        if own is None or self.asked.arm == "from-golden":
            return self.work.golden(before)
        return own

    async def _grade(self, stage: str, went: Went | None) -> None:
        """Grade a stage, fill its slot, and tell it."""
        self.workspace.mkdir(exist_ok=True)
        given = self._given(stage)
        graded = await asyncio.to_thread(
            grade, self.asked.workload, stage, self.workspace, given, jobs=self.asked.jobs
        )
        marks: list[tuple[str, Mapping[str, object]]] = [("graded", _said(graded, went))]
        left = graded.left
        if not graded.passed and self.asked.arm == "resurrect":
            left = self.work.golden(stage)
            reason = graded.result
            fact = {"stage": stage, "reason": reason, "score": graded.score}
            marks.append(("resurrection", fact))
        self.kept.keep(left)
        self.kept.graded[stage] = [(name, {**data, "before": True}) for name, data in marks]
        self.kept.write()
        for name, data in marks:
            await self._tell(name, data)
        score = "unknown" if graded.score is None else f"{graded.score:.1f}"
        _say(f"{stage}: {score} ({graded.result}), given {graded.given}")


def _said(graded: Graded, went: Went | None) -> dict[str, object]:
    """A grade as its mark says it."""
    return {
        "stage": graded.stage,
        "score": graded.score,
        "passed": graded.passed,
        "result": graded.result,
        "given": graded.given,
        "cases": {case.case: [case.result, case.score, case.reached] for case in graded.cases},
        "left": graded.left.sha256,
    }


def _say(line: str) -> None:
    click.echo(f"pipeline: {line}", err=True)


async def drive(folder: Path) -> int:
    """Drive the run whose folder this is; Failed where nobody records it."""
    told = await teller()
    if told is None:
        raise Failed("nobody records this: `stumble pipeline run` starts it by itself")
    async with told:
        return await Driver(folder, Asked.read(folder), Kept.read(folder), told).drive()


if __name__ == "__main__":
    from recorder import loop

    sys.exit(loop.run(drive(Path(sys.argv[1]).absolute())))
