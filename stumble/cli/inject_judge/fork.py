"""`stumble fork`: replay up to one call, inject a fault there, continue live, and judge."""

import json
from collections.abc import Iterator, Sequence
from copy import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct, field, to_builtins

from stumble.cli import match_options, options
from stumble.cli.trust import require_trust, trust_option
from stumble.errors import UsageError, signal_to_exit_code
from stumble.notices import print_warning

if TYPE_CHECKING:
    from replay.matching.rules import MatchRule
    from stumble.runs.environment.upstream_trust import UpstreamTrust
    from stumble.runs.environment.worlds import WorldCommands
    from stumble.runs.fork import ForkPlan, ForkResult, ForkRun
    from stumble.runs.fork_report import ForkReport
    from stumble.runs.isolation import IsolationPlan, WorkspaceChoice
    from stumble.runs.launcher import ColdLauncher
    from stumble.runs.types import Hosts
    from traces.model import Fault
    from traces.store.store_dir import StoreDirectory

FORK_STOP_SECONDS = 5.0
"""Seconds that agents get to exit after a signal to stumble."""
OUTSIDE_SERVER_HINT = (
    "--reset ran in a fresh copy of the folder: if a server outside works on files of that "
    "folder, use --in-place"
)

PIN_HINT = "if a local tool prints something else in each run, --pin sends the recorded result"


@click.command(
    epilog="Exit codes: 0 judged, 3 diverged before the injection, 4 no fault fired, 5 no "
    "verdict possible for any of the runs.",
)
@options.tape_argument
@trust_option
@options.fault_injection_options(required=True)
@click.option(
    "--twins",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    help="Number of clean continuations to compare with: at least 3, or 0 for facts without a "
    "verdict.",
)
@click.option(
    "--times",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of faulted continuations; each samples its own wrong value.",
)
@click.option(
    "--confirm",
    is_flag=True,
    help="Measure the effect of the wrong value: as many runs as twins with one wrong value, and "
    "as many with another one.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    help="Parallel runs; default: one per processor if each run has a copy of the folder and "
    "there is no --reset, else 1.",
)
@click.option(
    "--pin",
    is_flag=True,
    help="Before the injection, send the model the recorded result if a local tool gives another "
    "one; such results are counted.",
)
@click.option(
    "--model",
    "model_texts",
    metavar="NAME",
    multiple=True,
    help="Continue with another model: NAME of the same provider, or PROVIDER:NAME of another one "
    "(litellm translates; its key is read from the environment). Repeat it, or separate names by "
    "commas, to fork with each.",
)
@click.option(
    "--edit-prompt",
    "edit_texts",
    type=(str, str),
    multiple=True,
    metavar="OLD NEW",
    help="Continue with an edited prompt: the text OLD of the system and user messages is NEW in "
    "the live requests. May be repeated.",
)
@options.match_option
@options.world_options
@options.workspace_options
@options.host_option
@options.upstream_trust_options
@options.budget_option(600.0)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@options.agent_command
def fork(
    tape: Path,
    faults: tuple["Fault", ...],
    seed: int,
    twins: int,
    times: int,
    confirm: bool,
    jobs: int | None,
    pin: bool,
    model_texts: tuple[str, ...],
    edit_texts: tuple[tuple[str, str], ...],
    rule_texts: tuple[str, ...],
    world_commands: "WorldCommands",
    workspace_choice: "WorkspaceChoice",
    host_texts: tuple[str, ...],
    trust: "UpstreamTrust",
    budget: float,
    as_json: bool,
    command: tuple[str, ...],
) -> None:
    """Replay up to one call, inject a fault there, continue live, then judge the agent.

    Before the injection the model's answers come from the tape. With --reset, tools run live in
    a world that is reset before each run; without it their answers come from the tape, and a
    call that is not on it ends the run as unknown. Clean twins, continued from the same call
    without a fault, show what the agent does anyway. At the model boundary only the model sees
    the wrong value; the agent's process and files keep the true one.

    Each run works in a fresh copy of the agent's folder as it was before the recording, at the
    same path; --reset and --verify run there too. Servers outside do not see these copies: if
    one works on files of that folder, use --in-place. The network is open in all runs.

    \b
    stumble fork refund.tape --fault http_status:code=503 --where tool=issue_refund \\
        --reset "python reset_shop.py" --verify "python check_shop.py" -- python my_agent.py
    stumble fork refund.tape --fault digit --where tool=get_order --reset ./reset.sh \\
        --verify ./verify.sh --model gpt-5-mini,anthropic:claude-sonnet-4-5
    stumble fork refund.tape --fault digit --where tool=get_order --reset ./reset.sh \\
        --edit-prompt "You are helpful." "You are helpful. Read each amount twice."
    """
    from replay.matching.rules import parse_match_rule
    from replay.prompt_edit import PromptEdit
    from scenarios.pipeline.replay_check import Pipeline, find_passed_stages
    from stumble.campaigns.run_matrix import place_in_stage
    from stumble.runs.fork import ForkPlan, find_fork_point
    from stumble.runs.isolation import max_parallel_runs, plan_isolation
    from stumble.runs.launcher import ColdLauncher
    from stumble.store.tape_files import load_tape
    from stumble.user_data.paths import store_root
    from stumble.verdicts.exclusions import check_twins
    from traces.conversation.derived_steps import derive_tape_steps
    from traces.store.store_dir import StoreDirectory

    world = world_commands.make_world(has_fresh_copy=not workspace_choice.in_place)
    recording = load_tape(tape)
    marked = world is None and bool(recording.marks)
    if marked:
        world = Pipeline(find_passed_stages(recording.marks))
    match_options.check_recorded_rules(recording.trajectory.rules, tape)
    require_trust(recording, command, in_place=workspace_choice.in_place)
    rules = match_options.collect_match_rules(None, rule_texts)
    command = options.choose_agent_command(command, recording.trajectory)
    with options.usage_errors():
        check_twins(twins)
    if confirm and (times > 1 or not twins):
        raise UsageError("--confirm runs as many forks as twins: needs --twins, excludes --times")
    store = StoreDirectory(store_root())
    isolation_plan = plan_isolation(
        recording.trajectory,
        store,
        workspace_choice,
        live="the agent is live after the injection",
    )
    with options.usage_errors():
        derived_steps = derive_tape_steps(recording)
        placed = [
            place_in_stage(recording, derived_steps, fault, seed=seed, world=world is not None)
            for fault in faults
        ]
        fork_point = find_fork_point(recording, placed, derived_steps, seed=seed)
        designs = tuple(
            ForkPlan(
                fork_point=fork_point,
                twins=twins,
                times=times,
                confirm=confirm,
                world=world,
                seed=seed,
                pin=pin,
                rules=tuple(map(parse_match_rule, rules)),
                workspace=isolation_plan.workspace,
                other_model=other_model,
                prompt_edits=tuple(PromptEdit(old=old, new=new) for old, new in edit_texts),
            )
            for other_model in options.parse_model_choices(model_texts) or (None,)
        )
    jobs = min(
        max_parallel_runs(isolation_plan, jobs, world=world is not None and not marked),
        len(designs[0].list_runs()),
    )
    launch = ColdLauncher(command=command, budget=budget, patience=FORK_STOP_SECONDS)
    shows_agent = jobs == times == 1 and not confirm and not as_json
    forks = _Forks(
        launch=launch,
        store=store,
        name=tape.stem,
        shows_agent=shows_agent,
        hosts=options.parse_host_options(host_texts),
        trust=trust,
        jobs=jobs,
        isolation_plan=isolation_plan,
        idle=match_options.find_unplaced_rules(rule_texts, recording.exchanges),
        as_json=as_json,
        resets=world_commands.reset is not None,
    )
    raise SystemExit(forks.run_all(designs))


class _AgentStarts(Struct, frozen=True):
    """How the agent of each run starts: its output goes to a log, or to the terminal."""

    launch: "ColdLauncher"
    store: "StoreDirectory"
    name: str
    shows_faulted: bool
    has_model: bool
    """Whether the agent's end is in its traffic; else its output is kept, and shown at the end."""

    def make_launcher(self, run: "ForkRun") -> "ColdLauncher":
        is_shown = self.shows_faulted and run.condition == "fault"
        if is_shown and self.has_model:
            return self.launch
        log = self.store.log_path(f"{self.name}-{run.condition}-{run.rep}")
        return replace(self.launch, output=log, is_shown=is_shown)


class _Forks(Struct, kw_only=True):
    """Forks of one recording with each of several models, one after another."""

    launch: "ColdLauncher"
    store: "StoreDirectory"
    name: str
    shows_agent: bool
    hosts: "Hosts"
    trust: "UpstreamTrust"
    jobs: int
    isolation_plan: "IsolationPlan"
    idle: "tuple[MatchRule, ...]"
    as_json: bool
    resets: bool
    reports: list[dict[str, object]] = field(default_factory=list)

    def run_all(self, designs: "Sequence[ForkPlan]") -> int:
        """Run and report each fork; return the highest of their exit codes."""
        code, failure = 0, None
        for number, design in enumerate(designs):
            name = f"{self.name}-model{number}" if len(designs) > 1 else self.name
            own_code, failure = self._run_one(design, name)
            code = max(code, own_code)
            if failure is not None:
                break
        if self.as_json:
            alone = len(designs) == 1
            click.echo(json.dumps(self.reports[0] if alone else {"models": self.reports}))
        if failure is not None:
            raise failure
        return code

    def _run_one(self, design: "ForkPlan", name: str) -> tuple[int, BaseException | None]:
        """Return the exit code of a fork, and what ended it early."""
        from stumble.runs.fork import ForkResult

        forked = ForkResult(wanted=design.list_runs())
        _describe_plan(design, self.isolation_plan)
        has_model = not any(use.is_of_program for use in design.fork_point.derived_steps.tool_uses)
        starts = _AgentStarts(self.launch, self.store, name, self.shows_agent, has_model)
        failure = self._run_to_end(design, forked, starts)
        code = self._report(design, forked)
        signal = next((ran.exit.signal for ran in forked.runs if ran.exit.signal), None)
        return code if signal is None else signal_to_exit_code(signal), failure

    def _run_to_end(
        self, design: "ForkPlan", forked: "ForkResult", starts: _AgentStarts
    ) -> BaseException | None:
        """Run all forks; return what ended them early, to be raised after the report.

        Their rows are written by the next query, as those of `record` are: the report judges tapes.
        """
        from recorder import ending_signals, event_loop

        failure: BaseException | None = None
        try:
            with options.report_launch_failure(starts.launch.command):
                event_loop.run_event_loop(self._run_planned(design, forked, starts))
        except (ending_signals.SignalInterrupt, ChildProcessError) as error:
            failure = error
        return failure

    async def _run_planned(
        self, design: "ForkPlan", forked: "ForkResult", starts: _AgentStarts
    ) -> None:
        """Run all forks of a plan in one session, `jobs` at a time."""
        from stumble.runs.fork import run_fork
        from stumble.runs.session import open_recorded_session

        recording = design.fork_point.recording
        async with open_recorded_session(recording, self.hosts, trust=self.trust) as session:
            await run_fork(
                session,
                design,
                forked,
                starts.make_launcher,
                starts.store.tapes,
                jobs=self.jobs,
                progress=lambda what: click.echo(f"  {what}", err=True),
            )

    def _report(self, design: "ForkPlan", forked: "ForkResult") -> int:
        """Print warnings and the judged fork, or keep it as data; return the exit code."""
        from stumble.runs.fork_report import judge_fork
        from stumble.runs.summary import collect_run_warnings, describe_upstream_errors
        from traces.tape.reader import read_tape

        for why in (
            *collect_run_warnings(forked.runs),
            *describe_upstream_errors(read_tape(x.path) for x in forked.runs if x.diverged),
            *match_options.describe_unused_rules(self.idle, forked.runs),
        ):
            print_warning(why)
        report = judge_fork(design.fork_point, forked)
        data, lines = _format_fork(report, design, self.isolation_plan)
        if data["diverged"]:
            in_copy = bool(self.isolation_plan.workspace and self.resets)
            lines += _list_divergence_hints(design, in_copy=in_copy)
        if design.other_model is not None:
            data["model"] = str(design.other_model)
        self.reports.append(data)
        if not self.as_json:
            injected = [each.verdict for each in report.judged if each.verdict is not None]
            lines += [f"next: stumble why {each.injection_id}" for each in injected[:1]]
            click.echo("\n".join(lines))
        return report.code


def _describe_plan(design: "ForkPlan", isolation_plan: "IsolationPlan") -> None:
    from stumble.verdicts.exclusions import NO_TWINS_NOTE

    for line in (
        f"injecting into {design.fork_point.describe()}",
        isolation_plan.describe_workspace(),
        *_describe_other_model(design),
        *(f"prompt: {_shorten(each.old)} -> {_shorten(each.new)}" for each in design.prompt_edits),
        *(() if design.twins else (NO_TWINS_NOTE,)),
    ):
        click.echo(line, err=True)


def _shorten(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}...")


def _describe_other_model(design: "ForkPlan") -> Iterator[str]:
    """Yield how the runs continue, and which values of the conversation may be refused."""
    if design.other_model is None:
        return
    recorded = design.fork_point.recording.trajectory.model or "the recorded model"
    yield f"model: {recorded} from the recording, then {design.other_model}"
    keys = ", ".join(design.list_model_bound_keys())
    if keys and design.other_model.provider:
        yield f"{design.other_model.provider} does not get what it cannot use: {keys}"
    elif keys:
        yield (
            f"the conversation has values that only the model that wrote them accepts ({keys}): "
            "the provider may refuse them"
        )


def _format_fork(
    report: "ForkReport", design: "ForkPlan", isolation_plan: "IsolationPlan"
) -> tuple[dict[str, object], list[str]]:
    """Return the report of a fork as JSON data and as lines, with the confirmation if planned."""
    from stumble.runs.fork_report import confirm_fork, confirmation_to_lines

    kept_copies = [str(ran.kept) for ran in report.forked.runs if ran.kept]
    data = report.to_dict() | isolation_plan.to_dict({}) | {"kept_workspaces": kept_copies}
    lines = [*report.to_lines(), *(f"a copy is in {each}" for each in kept_copies)]
    if design.confirm:
        confirmation = confirm_fork(report.forked, design.twins)
        data["confirmation"] = to_builtins(confirmation)
        lines += confirmation_to_lines(confirmation)
    return data, lines


def _list_divergence_hints(design: "ForkPlan", *, in_copy: bool) -> list[str]:
    """Return what may help; `in_copy` if --reset ran in a copy of the folder."""
    from replay.result_pinning import find_pinnable_uses

    tool_uses = design.fork_point.derived_steps.tool_uses
    pinnable = not design.pin and find_pinnable_uses(tool_uses)
    return [*([OUTSIDE_SERVER_HINT] if in_copy else []), *([PIN_HINT] if pinnable else [])]
