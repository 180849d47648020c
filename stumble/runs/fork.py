"""A fork with its controls: k faulted continuations of a prefix, and k clean ones.

The clean twins are shams at the same site, so that all of them are held back, left and made
live in exactly the same way; only the injected value differs.
"""

import asyncio
from collections.abc import Callable, Sequence
from copy import replace
from functools import partial
from pathlib import Path

from msgspec import Struct, field

from faults.judging.judge import MIN_CLEAN_TWINS
from faults.judging.value_tokens import extract_tokens
from faults.specs.spec_check import bind_operator
from faults.targeting.bound_fault import BoundFault
from faults.targeting.model_turns import describe_turn
from faults.targeting.observations import CleanObservations, observe_recording
from faults.targeting.site import (
    InjectionSite,
    find_recording_address,
    resolve_position,
    select_site,
)
from replay.fork_state import Fork
from replay.live_prefix import AnswerControls
from replay.matching.rules import MatchRule
from replay.model_substitution import find_model_bound_keys, find_model_name
from replay.prompt_edit import PromptEdit, find_prompt_texts, name_prompt_edits
from replay.result_pinning import find_pinnable_uses
from scenarios.world import World
from stumble.llm.model_choice import ModelChoice
from stumble.runs.environment.workspaces import RecordedWorkspace
from stumble.runs.injection import InjectionPlan
from stumble.runs.prefix_uses import RecordedUses
from stumble.runs.replay import run_until_it_follows
from stumble.runs.session import ReplaySession
from stumble.runs.types import AgentLauncher, ReplayPlan, RunLabels, RunResult
from stumble.user_data.paths import new_experiment_id
from traces.conversation.derived_steps import DerivedSteps, derive_tape_steps
from traces.model import Condition, Fault
from traces.tape.reader import Tape

SHAM = "sham"


class ForkPoint(Struct, frozen=True, kw_only=True):
    """A place in a recording to fork at, and the data that its runs share."""

    recording: Tape
    derived_steps: DerivedSteps
    site: InjectionSite
    """The first call with an injection."""
    bound_faults: tuple[BoundFault, ...]
    """The faults, and which of them begin with that call; the others count as the run goes on."""
    background: frozenset[str]
    observations: CleanObservations

    @property
    def fault(self) -> Fault:
        """The first fault."""
        return self.bound_faults[0].fault

    @property
    def injection_plan(self) -> InjectionPlan:
        """The faults to inject in a run, and their site."""
        return InjectionPlan(
            bound_faults=self.bound_faults,
            site=self.site,
            background=self.background,
            observations=self.observations,
        )

    def describe(self) -> str:
        """`issue_refund (step 7) at http with http_status(code=503), once`."""
        mutated = " and ".join(
            _describe_fault(armed.fault) for armed in self.bound_faults if armed.site
        )
        later = "".join(
            f"; then {_describe_fault(a.fault)}" for a in self.bound_faults if a.site is None
        )
        return f"{self._describe_site()} at {self.site.place} with {mutated}{later}"

    def _describe_site(self) -> str:
        if self.site.turn is not None:
            return describe_turn(self.site.turn)
        use = self.derived_steps.find_use(self.site.call_id)
        return self.site.tool + (f" (step {use.step})" if use else "")


def _describe_fault(fault: Fault) -> str:
    operator = bind_operator(fault)
    chosen = operator.with_defaults(fault.params)
    params = ", ".join(f"{key}={value}" for key, value in chosen.items() if value != "")
    return f"{operator.name}({params}), {fault.persist}"


def find_fork_point(
    recording: Tape,
    faults: Fault | Sequence[Fault],
    derived_steps: DerivedSteps | None = None,
    *,
    seed: int = 0,
    rep: int = 0,
) -> ForkPoint:
    """Return the fork point of a fault, or of several faults at their first call.

    Raises ValueError or LookupError, before anything starts, if a fault or its site is invalid.
    """
    faults = (faults,) if isinstance(faults, Fault) else faults
    derived_steps = derived_steps or derive_tape_steps(recording)
    places = {fault.at for fault in faults}
    if "model" in places and len(places) > 1:
        raise ValueError("faults at the model and faults at tools cannot be combined")
    sites = [
        select_site(derived_steps, fault, bind_operator(fault), seed=seed, rep=rep)
        for fault in faults
    ]
    first, named = (
        min(sites, key=lambda site: len(site.before)),
        find_recording_address(derived_steps),
    )
    settled_ones = [resolve_position(derived_steps, fault, seed=seed, rep=rep) for fault in faults]
    armed = [
        BoundFault(fault=fault, site=site, trace=named)
        if len(site.before) == len(first.before)
        else BoundFault(fault=replace(fault, at=site.place), trace=named)
        for fault, site in zip(settled_ones, sites, strict=True)
    ]
    return ForkPoint(
        recording=recording,
        derived_steps=derived_steps,
        site=first,
        bound_faults=tuple(sorted(armed, key=lambda each: each.site is None)),
        background=collect_background_tokens(derived_steps),
        observations=observe_recording(derived_steps, recording.exchanges),
    )


def collect_background_tokens(derived_steps: DerivedSteps) -> frozenset[str]:
    """Return all value tokens of a recording: an injected value must differ from each of them."""
    texts = [step.message for step in derived_steps.steps]
    for use in derived_steps.tool_uses:
        texts += [use.arguments, use.result or ""]
    return frozenset().union(*(extract_tokens(text) for text in texts)) if texts else frozenset()


def plan_fork_run(
    found: ForkPoint,
    condition: Condition,
    *,
    world: World | None,
    seed: int,
    rep: int = 0,
    pin: bool = False,
    labels: RunLabels | None = None,
    workspace: RecordedWorkspace | None = None,
    controls: AnswerControls | None = None,
) -> ReplayPlan:
    """The plan of one continuation: faulted, or a sham at the same site."""
    injection = found.injection_plan
    if condition != "fault":
        # A sham stands where the first fault stands, once: it has nothing to persist.
        fault = Fault(name=SHAM, at=found.fault.at)
        injection = replace(injection, bound_faults=(BoundFault(fault=fault, site=found.site),))
    return ReplayPlan(
        source="fork",
        condition=condition,
        fork=Fork(
            found.site.call_id,
            None if found.site.alone else found.site.prefix,
            world is not None,
            found.site.turn,
        ),
        injection_plan=injection,
        world=world,
        seed=seed,
        rep=rep,
        pin=find_pinnable_uses(found.derived_steps.tool_uses) if pin else (),
        labels=labels or RunLabels(),
        workspace=workspace,
        controls=controls or AnswerControls(RecordedUses(found.recording, found.derived_steps)),
    )


class ForkRun(Struct, frozen=True, kw_only=True):
    """One run of a fork."""

    condition: Condition
    rep: int
    of: int

    def __str__(self) -> str:
        if self.condition == "clean":
            return f"clean twin {self.rep + 1} of {self.of}"
        return "faulted run" if self.of == 1 else f"faulted run {self.rep + 1} of {self.of}"


class ForkPlan(Struct, frozen=True, kw_only=True):
    """Plan of a fork: its fork point, the number of runs, and their environment.

    Raises ValueError if results are to be pinned and the recording has none.
    """

    fork_point: ForkPoint
    twins: int = MIN_CLEAN_TWINS
    times: int = 1
    """How many faulted runs there are."""
    confirm: bool = False
    """Whether `twins` runs get one same injected value, and as many runs a second one."""
    world: World | None = None
    seed: int = 0
    pin: bool = False
    rules: tuple[MatchRule, ...] = ()
    """What of a request may differ from the recorded one, beside what the recording says."""
    workspace: RecordedWorkspace | None = None
    labels: RunLabels = field(default_factory=lambda: RunLabels(experiment=new_experiment_id()))
    """Labels of all of its runs: they are one experiment."""
    condition: Condition | None = None
    """Condition of its runs; None for clean or fault, by what is injected."""
    other_model: ModelChoice | None = None
    """The model that goes on after the injection; None for the recorded one."""
    prompt_edits: tuple[PromptEdit, ...] = ()
    """Texts of the prompt that are replaced in what the model reads from there on."""
    controls: AnswerControls = field(default_factory=AnswerControls)

    def __post_init__(self) -> None:
        self.controls.uses = RecordedUses(self.fork_point.recording, self.fork_point.derived_steps)
        self._check_other_model()
        self._check_prompt_edits()
        if self.pin and not find_pinnable_uses(self.fork_point.derived_steps.tool_uses):
            raise ValueError(
                "--pin puts the recorded results of local tools into requests, and this recording "
                "has none: leave it out"
            )

    def _check_other_model(self) -> None:
        if self.other_model is None:
            return
        check_other_model(self.fork_point.recording, self.other_model)

    def _check_prompt_edits(self) -> None:
        """Raise ValueError if a text to replace is in no prompt of the recording."""
        if not self.prompt_edits:
            return
        requests = (each.request for each in self.fork_point.recording.exchanges)
        texts = {found.text for request in requests for found in find_prompt_texts(request)}
        for edit in self.prompt_edits:
            if not edit.old or not any(edit.old in text for text in texts):
                start = edit.old if len(edit.old) <= 60 else f"{edit.old[:60]}..."
                raise ValueError(
                    f"--edit-prompt {start!r}: no system or user message of the recording has this "
                    "text; `stumble show TAPE --json` and the pages of `stumble ui` show them"
                )

    def _make_labels(self) -> RunLabels:
        """Return the labels; with another prompt it is another agent in all tables."""
        labels = label_other_model(self.labels, self.other_model)
        if not self.prompt_edits:
            return labels
        recorded = self.fork_point.recording.trajectory.agent
        agent = labels.agent or recorded or "agent"
        return replace(labels, agent=f"{agent}, {name_prompt_edits(self.prompt_edits)}")

    def list_runs(self) -> tuple[ForkRun, ...]:
        """All runs, the clean ones first: one that leaves the recording ends it."""
        clean = (ForkRun(condition="clean", rep=n, of=self.twins) for n in range(self.twins))
        times = 2 * self.twins if self.confirm else self.times
        faulted = (ForkRun(condition="fault", rep=n, of=times) for n in range(times))
        return (*clean, *faulted)

    def plan_run(self, each: ForkRun) -> ReplayPlan:
        """The plan of one of them."""
        planned = plan_fork_run(
            self.fork_point,
            each.condition,
            world=self.world,
            seed=self.seed,
            rep=each.rep // self.twins if self.confirm else each.rep,
            pin=self.pin,
            labels=self._make_labels(),
            workspace=self.workspace,
            controls=self.controls,
        )
        condition = self.condition or planned.condition
        return replace(
            planned,
            condition=condition,
            rules=self.rules,
            other_model=self.other_model,
            prompt_edits=self.prompt_edits,
        )

    def list_model_bound_keys(self) -> tuple[str, ...]:
        """Return what of the conversation the other model may refuse, or does not get."""
        if self.other_model is None:
            return ()
        requests = tuple(each.request for each in self.fork_point.recording.exchanges)
        if self.other_model.provider is None:
            found = [find_model_bound_keys(each) for each in requests if find_model_name(each)]
        else:
            from stumble.llm.translated_upstream import find_untranslatable_keys

            found = [find_untranslatable_keys(each) for each in requests]
        return tuple(sorted({key for keys in found for key in keys}))


def label_other_model(labels: RunLabels, other: ModelChoice | None) -> RunLabels:
    """Return the labels of a run that another model goes on with."""
    return labels if other is None else replace(labels, model=other.name)


def check_other_model(recording: Tape, other: ModelChoice) -> None:
    """Raise ValueError if the model cannot go on with the conversation of a recording."""
    requests = tuple(exchange.request for exchange in recording.exchanges)
    if other.provider is None:
        if not any(map(find_model_name, requests)):
            raise ValueError(
                "--model writes another name into the body of model requests, and those of this "
                "recording name no model there (Gemini names it in the URL, or bodies are "
                "compressed)"
            )
        return
    from stumble.llm.translated_upstream import translate_request

    asked = [each for each in map(translate_request, requests) if each is not None]
    if not asked:
        raise ValueError(
            f"--model {other}: requests are translated from the APIs of OpenAI (chat completions "
            "and responses) and Anthropic, and this recording has none of these"
        )
    if any("previous_response_id" in each.left_out for each in asked):
        raise ValueError(
            f"--model {other}: the provider keeps the history of this conversation "
            "(previous_response_id), so that another one cannot continue it"
        )


class ForkResult(Struct, frozen=True, kw_only=True):
    """Finished runs of a fork with its controls so far."""

    wanted: tuple[ForkRun, ...]
    played: dict[ForkRun, RunResult] = field(default_factory=dict)
    """The finished runs, in the order in which they finished."""

    @property
    def runs(self) -> tuple[RunResult, ...]:
        """All finished runs, in planned order."""
        return tuple(self.played[each] for each in self.wanted if each in self.played)

    @property
    def finished(self) -> tuple[RunResult, ...]:
        """The runs that no signal to this process ended."""
        return tuple(run for run in self.runs if run.exit.signal is None)

    def find_finished(self, condition: Condition) -> tuple[RunResult, ...]:
        """The finished runs of that condition."""
        wanted = (each for each in self.wanted if each.condition == condition)
        played = (self.played[each] for each in wanted if each in self.played)
        return tuple(run for run in played if run.exit.signal is None)


type LauncherFactory = Callable[[ForkRun], AgentLauncher]


async def run_fork(
    session: ReplaySession,
    design: ForkPlan,
    forked: ForkResult,
    launch: LauncherFactory,
    folder: Path,
    *,
    jobs: int = 1,
    progress: Callable[[str], object] = lambda what: None,
) -> None:
    """Run the continuations, `jobs` at once, each onto a tape of its own.

    No more are started once one has left the recording, and all end once we are told to end. What
    is over is in `forked`, whatever happens; ChildProcessError where a world could not be set
    back.
    """
    todo = iter(forked.wanted)

    async def work() -> bool:
        """Whether all may go on."""
        for each in todo:
            if any(run.diverged for run in forked.runs):
                break
            progress(str(each))
            played = await run_until_it_follows(
                session,
                design.fork_point.recording,
                folder,
                design.plan_run(each),
                partial(launch, each),
            )
            forked.played[each] = played
            if played.exit.signal is not None:
                return False
            if jobs > 1:
                progress(f"{len(forked.played)} of {len(forked.wanted)} are over")
        return True

    workers = [asyncio.create_task(work()) for _ in range(jobs)]
    try:
        for worker in asyncio.as_completed(workers):
            if not await worker:
                break
    finally:
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
