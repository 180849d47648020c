"""The driver: the command that a pipeline run records.

For each stage it starts the agent in the workspace, grades the result outside of it, fills the
slot of the stage and sends run events to the recorder. If a stage fails, the golden artifacts
replace its own before the next one (resurrection): the agent does not know, and the score is
unchanged.
"""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from recorder.run_events import RunEventClient, connect_run_events
from sandbox.deep_folders import cut_deep_folders
from sandbox.types import Sandbox
from scenarios.agents.presets import parse_agent_preset
from scenarios.pipeline.compiler.types import PASS, ArtifactSlot, StageGrade
from scenarios.pipeline.grader import grade_pipeline_stage
from scenarios.pipeline.workload import PipelineWorkload, find_workload
from stumble.errors import HarnessError
from stumble.notices import print_notice
from stumble.pipeline.budget_text import describe_attempts, describe_budget
from stumble.pipeline.checkpoint import COSTS, PipelineCheckpoint
from stumble.pipeline.config import WORKSPACE_FOLDER, PipelineConfig
from stumble.pipeline.sandbox import open_stage_sandbox
from stumble.pipeline.stage_agent import AttemptResult, run_stage_agent
from stumble.pipeline.visibility_check import find_visible_paths
from stumble.runs.budgets import OF_RUN
from stumble.runs.environment.workspaces import COPY_VARIABLE

type EventData = Mapping[str, object]


class PipelineDriver:
    """Drives one run of the pipeline, from the checkpoint in its folder."""

    def __init__(
        self, folder: Path, asked: PipelineConfig, kept: PipelineCheckpoint, told: RunEventClient
    ) -> None:
        self.folder, self.asked, self.kept, self.told = folder, asked, kept, told
        self.workspace = folder / WORKSPACE_FOLDER
        self.work: PipelineWorkload = find_workload(asked.workload)
        self._anew = True
        """Whether to grade again even if a grade of the same workspace is cached."""
        self._over: str | None = None
        """The run budget that is exhausted, or None."""
        self._spent_here: EventData | None = None
        """The cost of the attempts before at the stage that runs."""
        self._sandboxes: list[EventData] = []
        """The sandboxes of the attempts at the stage that runs."""

    async def drive(self) -> None:
        """Run the stages that are not graded yet; send the events of the others again."""
        reply = await self._send_event("pipeline", self.asked.to_event_data())
        self._anew = bool(reply["strict"])
        if reply["run"] != self.kept.run and COPY_VARIABLE not in os.environ:
            raise HarnessError(
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
                await self._run_stage(stage)
            else:
                for name, data in self.kept.graded[stage]:
                    await self._send_event(name, data)

    async def _send_event(self, name: str, data: EventData) -> EventData:
        reply = await self.told.send_event(name, data)
        over = reply.get("over")
        counts = self.asked.budget_scope == "run" or over in OF_RUN
        self._over = str(over) if over and counts else None
        return reply

    async def _run_stage(self, stage: str) -> None:
        """Run the agent at a stage, if any budget is left, and grade it."""
        given, over = self._find_stage_input(stage), self._over
        earlier = self.kept.spent.get(stage)
        began = await self._send_event(
            "stage",
            {
                "stage": stage,
                "given": given.provenance,
                "attempted": over is None,
                "limits": dict(self.asked.limits),
                "scope": self.asked.budget_scope,
                **({} if earlier is None else {"before": earlier}),
            },
        )
        self._spent_here = earlier
        for data in self.kept.attempts.get(stage, []):
            began = await self._send_event("attempt", _omit_costs(data))
        while True:
            attempt = AttemptResult(exit=None, seconds=0.0, budget=over)
            if over is None and self.asked.agent:
                attempt = await self._run_agent(stage, began)
            spent = await self._end_attempt(stage, attempt)
            graded = await self._compute_grade(stage, given)
            failed = {"attempted": over is None, **spent, "score": graded.score}
            if not self._may_try_again(stage, graded, failed):
                break
            began = await self._begin_next_attempt(stage, {**failed, "result": graded.result})
        costs = {**spent, "attempted": over is None}
        await self._keep_grade(stage, given, graded, costs)

    async def _end_attempt(self, stage: str, attempt: AttemptResult) -> dict[str, object]:
        """Send how an attempt ended; return that with what the stage has cost so far."""
        ended: EventData = {
            "stage": stage,
            "exit": attempt.exit,
            "budget": attempt.budget,
            "limit": attempt.limit,
            "seconds": attempt.seconds,
        }
        cost = await self._send_event("agent", ended)
        if attempt.budget is not None:
            limit = self.asked.limits.get(attempt.budget)
            await self._send_event(
                "budget", {"stage": stage, "kind": attempt.budget, "limit": limit}
            )
        self._spent_here = {name: cost[name] for name in COSTS}
        return {**ended, **self._spent_here}

    def _may_try_again(self, stage: str, graded: StageGrade, ended: EventData) -> bool:
        """Return whether the agent is started at a failed stage once more."""
        made = len(self.kept.attempts.get(stage, [])) + 1
        if made >= self.asked.attempts or not self.asked.agent or graded.passed is not False:
            return False
        return bool(ended["attempted"]) and ended["budget"] is None and self._over is None

    async def _begin_next_attempt(self, stage: str, ended: EventData) -> EventData:
        """Keep an attempt that failed, in the checkpoint and on the tape."""
        before = self.kept.attempts.setdefault(stage, [])
        data = {**ended, "attempt": len(before) + 1, "of": self.asked.attempts}
        before.append(data)
        self.kept.write()
        _print_pipeline_line(
            f"{stage}: {_format_score(ended['score'])} in attempt {data['attempt']} of {data['of']}"
        )
        return await self._send_event("attempt", _omit_costs(data))

    async def _run_agent(self, stage: str, began: EventData) -> AttemptResult:
        attempted = bool(self.kept.attempts.get(stage))
        go_on = self.asked.mode == "progressive" and (attempted or stage != self.asked.stages[0])
        task = self.work.task(self.workspace, stage, first=not go_on) + self._describe_budget(stage)
        start = parse_agent_preset(self.asked.agent).to_start_command(
            task, self.asked.model, go_on=go_on
        )
        seconds_left = began.get("left")
        _print_pipeline_line(f"{stage}: the agent works")
        self.workspace.mkdir(exist_ok=True)
        async with open_stage_sandbox(self.asked, self.folder, self.workspace, stage) as sandbox:
            seen = None
            if self.asked.sandbox != "none":
                seen = await find_visible_paths(sandbox, self.folder.resolve(), self.asked.store)
            attempt = await run_stage_agent(
                sandbox,
                start,
                log=self.folder / f"{stage}.log",
                teller=self.told,
                left=seconds_left if isinstance(seconds_left, int | float) else None,
            )
            await self._report_sandbox(stage, sandbox, seen)
        if cut := await asyncio.to_thread(cut_deep_folders, str(self.workspace)):
            _print_pipeline_line(f"{stage}: {cut} folders too deep to be graded were removed")
        return attempt

    def _describe_budget(self, stage: str) -> str:
        graded = [data for events in self.kept.graded.values() for data in events[:1]]
        before = [data for _, data in graded if data.get("attempted")]
        here = [] if self._spent_here is None else [self._spent_here]
        of_run = frozenset(self.asked.limits) if self.asked.budget_scope == "run" else OF_RUN
        limits = describe_budget(self.asked.limits, here, before, of_run=of_run)
        attempts = self.kept.attempts.get(stage, [])
        scores = [data["score"] for data in attempts]
        known = [score if isinstance(score, float) else None for score in scores]
        return limits + describe_attempts(self.asked.attempts, known, PASS)

    async def _report_sandbox(
        self, stage: str, sandbox: Sandbox, seen: tuple[str, ...] | None
    ) -> None:
        data = {
            "stage": stage,
            "isolation": sandbox.isolation,
            "weaker": list(sandbox.weaker),
            "refused": dict(sandbox.refused),
            "seen": None if seen is None else list(seen),
        }
        self._sandboxes.append(data)
        await self._send_event("sandbox", data)

    def _find_stage_input(self, stage: str) -> ArtifactSlot:
        """Return the input of a stage."""
        if stage in ("T0", "T1"):
            return self.work.source()
        before = f"T{int(stage[1:]) - 1}"
        slot = self.kept.load_slot(before)
        return self.work.golden(before) if slot is None or self.asked.arm == "from-golden" else slot

    async def _compute_grade(self, stage: str, given: ArtifactSlot) -> StageGrade:
        self.workspace.mkdir(exist_ok=True)
        return await asyncio.to_thread(
            grade_pipeline_stage,
            self.asked.workload,
            stage,
            self.workspace,
            given,
            jobs=self.asked.jobs,
            known=Path(self.asked.known),
            anew=self._anew or stage == "T0",  # T0 checks the machine
        )

    async def _keep_grade(
        self, stage: str, given: ArtifactSlot, graded: StageGrade, spent: EventData
    ) -> None:
        """Fill the slot of a stage, store it with the grade, then send the events."""
        events: list[tuple[str, EventData]] = [("graded", _grade_to_event(graded))]
        slot = graded.left
        if not graded.passed and self.asked.arm == "resurrect":
            slot = self.work.golden(stage)
            reason = graded.result if spent["attempted"] else "not_attempted"
            fact = {"stage": stage, "reason": reason, "score": graded.score}
            events.append(("resurrection", fact))
        self.kept.store_slot(slot)
        self.kept.graded[stage] = [
            (name, {**(spent if name == "graded" else {}), **data, "before": True})
            for name, data in [*events, *(("sandbox", data) for data in self._sandboxes)]
        ]
        self._sandboxes = []
        self.kept.write()
        for name, data in events:
            await self._send_event(name, data)
        score, calls = _format_score(graded.score), spent["calls"]
        _print_pipeline_line(
            f"{stage}: {score} ({graded.result}), given {graded.given}, {calls} calls"
        )


def _grade_to_event(graded: StageGrade) -> dict[str, object]:
    """Return the event data of a grade."""
    return {
        "stage": graded.stage,
        "score": graded.score,
        "passed": graded.passed,
        "ramp": graded.ramp_score,
        "chain": graded.chain_score,
        "result": graded.result,
        "given": graded.given,
        "cases": {case.case: [case.result, case.score, case.reached] for case in graded.cases},
        "left": graded.left.sha256,
        "walls": list(graded.walls),
        "files": None
        if graded.files is None
        else {name: [text.size, dict(text.pieces)] for name, text in graded.files.items()},
        "why": {case.case: case.why for case in graded.cases if case.why},
    }


def _omit_costs(data: EventData) -> EventData:
    """Return an attempt without its costs, which a replay may not know: prices change."""
    return {name: value for name, value in data.items() if name not in COSTS}


def _format_score(score: object) -> str:
    return f"{score:.1f}" if isinstance(score, int | float) else "no score"


def _print_pipeline_line(line: str) -> None:
    print_notice(f"pipeline: {line}")


async def drive_pipeline(folder: Path) -> None:
    """Drive the run in this folder. Raises HarnessError if it is not recorded."""
    client = await connect_run_events()
    if client is None:
        raise HarnessError("nobody records this: `stumble pipeline run` starts it by itself")
    async with client:
        await PipelineDriver(
            folder, PipelineConfig.read(folder), PipelineCheckpoint.read(folder), client
        ).drive()
