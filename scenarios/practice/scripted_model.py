"""The scripted model: its answer is a pure function of the conversation and its skill.

It replays its plan from the start on every request. Each planned call is looked up in the
conversation; once the results of a call are used up, that call is the answer. So it finds its place
after retries, errors and calls it never made, and two requests with the same conversation get the
same answer, ids included.
"""

import json
from collections.abc import Generator, Mapping, Sequence
from copy import replace
from hashlib import blake2b
from itertools import repeat, takewhile

from msgspec import Struct

from scenarios.practice import conversation, result_reader, scripted_solver
from scenarios.practice.dialects.smolagents_to_chat import FINAL_ANSWER_TOOL
from scenarios.practice.read_back import ReadBack, find_read_back
from scenarios.practice.result_reader import PlannedCall, ResultReading, find_result_differences
from scenarios.practice.scripted_solver import SolverOptions, StageTask
from scenarios.practice.shell_tool_names import BASH, DELEGATE, ShellTool
from scenarios.practice.shell_tool_names import find_shell_tool as offered_shell
from scenarios.practice.tasks.files import WORKSPACE_TASKS
from scenarios.practice.tasks.network import FETCH_TASK
from scenarios.practice.tasks.plan import PlanStep, PracticeTask, StepResults
from scenarios.practice.tasks.registry import ALL_TASKS
from scenarios.practice.tasks.shell import SHELL_TASKS, SUBMIT_COMMAND, ShellTask
from scenarios.practice.tasks.text_only import TEXT_ANSWERS
from scenarios.practice.tools.json_schema import JsonRow
from scenarios.practice.tools.registry import ALL_TOOLS
from traces.dialects.types import ModelAnswer, ToolCall

type KnownTask = PracticeTask | ShellTask | StageTask

FINAL_TOOLS = (FINAL_ANSWER_TOOL, "submit")
"""Tools that report the final answer in each of their arguments: smolagents', and DSPy's."""
CALL_TRIES = 3
"""Number of tries of a call before the model gives up."""


class ModelSkill(Struct, frozen=True, kw_only=True):
    """How careful the model is."""

    retries: bool = False
    """Repeats a call with an unusable result, and gives up honestly; otherwise it guesses."""
    verifies: bool = False
    """Reads every value twice, and reads back each write."""
    hopes: bool = False
    """Reports a problem, and goes on regardless."""
    stubborn: bool = False
    """Repeats a call until it gets a result, and never gives up."""
    p: float = 1.0
    """Probability of acting on a problem; otherwise it goes on as if it had no skill."""
    solver_options: SolverOptions | None = None
    """Options for the stages of the compiler pipeline; None for every other model."""


def parse_model_skill(model: str) -> ModelSkill | None:
    """Return the skill of a model name; None if no such model is served."""
    name = model.removeprefix("openai/").removeprefix("practice/")
    if name.partition(":")[0] == scripted_solver.SOLVER_NAME:
        return _parse_solver_skill(name.partition(":")[2])
    if name.startswith("p="):
        try:
            p = float(name.removeprefix("p="))
        except ValueError:
            return None
        return ModelSkill(retries=True, verifies=True, p=p) if 0 <= p <= 1 else None
    return SKILLS.get(name)


def _parse_solver_skill(words: str) -> ModelSkill | None:
    """Parse `T1=good,verifies`: a skill among the words is the solver's, otherwise it retries."""
    options = [word for word in words.split(",") if word]
    skill = SKILLS[next((word for word in options if word in SKILLS), "retries")]
    solver_options = scripted_solver.parse_solver_options(
        [word for word in options if word not in SKILLS]
    )
    return None if solver_options is None else replace(skill, solver_options=solver_options)


SKILLS = {
    "naive": ModelSkill(),
    "retries": ModelSkill(retries=True),
    "verifies": ModelSkill(retries=True, verifies=True),
    "hopes": ModelSkill(retries=True, verifies=True, hopes=True),
    "stubborn": ModelSkill(retries=True, stubborn=True),
}


def compute_next_answer(
    messages: Sequence[JsonRow], tools: Sequence[JsonRow], skill: ModelSkill
) -> tuple[ModelAnswer, tuple[str, ...]]:
    """Return the model's next answer, and the problems it has noticed since its last one."""
    offered, shell = (
        conversation.match_tool_names(tools, (*ALL_TOOLS, BASH, DELEGATE, *FINAL_TOOLS)),
        offered_shell(tools),
    )
    if shell is not None:
        offered[BASH] = shell.tool
    dialogue, task = _read_conversation_task(messages, offered, shell, skill)
    if not tools and (text_answer := TEXT_ANSWERS.get(dialogue.task or "")) is not None:
        return ModelAnswer(message=text_answer), ()
    if task is None or not tools:
        return ModelAnswer(message="NOT DONE: there is no task I know in this conversation."), ()
    player = _PlanRunner(task, skill)
    play, unread = (
        player.follow_plan(),
        {call: iter(texts) for call, texts in dialogue.results.items()},
    )
    try:
        ask = next(play)
        while (text := next(unread.get(ask.call.key, iter(())), None)) is not None:
            ask = play.send(text)
    except StopIteration as stop:
        final: str = stop.value
        calls = _build_final_calls(final, dialogue, offered, tools)
        answer = _build_final_answer(final, task, dialogue, offered, shell, calls)
        return answer, player.get_notices()
    requested = [ask.call, *(call for call in ask.in_parallel if call.key not in dialogue.results)]
    if missing := next((call.tool for call in requested if call.tool not in offered), None):
        return ModelAnswer(
            message=f"NOT DONE: there is no tool {missing} here."
        ), player.get_notices()
    calls = tuple(
        ToolCall(
            id=_make_call_id(dialogue, nth),
            name=offered[call.tool],
            arguments=_write_call_arguments(call, shell),
        )
        for nth, call in enumerate(requested)
    )
    return ModelAnswer(message=ask.text, calls=calls), player.get_notices()


def _read_conversation_task(
    messages: Sequence[JsonRow],
    offered: Mapping[str, str],
    shell: ShellTool | None,
    skill: ModelSkill,
) -> tuple[conversation.PracticeConversation, KnownTask | None]:
    """Return the conversation and its task; a solver's task covers the messages since its last
    stage began.
    """
    dialogue = conversation.read_chat_messages(messages, offered, shell)
    if skill.solver_options is None:
        return dialogue, _KNOWN_TASKS.get(dialogue.task or "")
    if (requested := scripted_solver.find_requested_stage(messages)) is None:
        return dialogue, None
    stage, at = requested
    since = conversation.read_chat_messages(messages[at:], offered, shell)
    return replace(since, digest=dialogue.digest), scripted_solver.build_stage_task(
        stage, skill.solver_options
    )


def _make_call_id(talk: conversation.PracticeConversation, nth: int = 0) -> str:
    """Return the id of the nth call of an answer; ids of providers have no common beginning."""
    if not nth:
        return f"call_{talk.digest[:24]}"
    return f"call_{blake2b(f'{talk.digest}/{nth}'.encode(), digest_size=12).hexdigest()}"


def _write_call_arguments(call: PlannedCall, shell: ShellTool | None) -> str:
    if call.tool == BASH and shell is not None:
        return shell.to_agent_arguments(call.arguments)
    return call.arguments_json


def _build_final_answer(
    text: str,
    task: KnownTask,
    talk: conversation.PracticeConversation,
    offered: dict[str, str],
    shell: ShellTool | None,
    final_calls: tuple[ToolCall, ...],
) -> ModelAnswer:
    """Return the last answer. An agent with only `bash` needs a submit command first, then the
    text.
    """
    arguments = json.dumps({"command": SUBMIT_COMMAND})
    submitted = conversation.to_call_key(BASH, arguments) in talk.results
    if isinstance(task, PracticeTask) or submitted or (shell is not None and shell.tool != BASH):
        return ModelAnswer(message=text, calls=final_calls)
    call = ToolCall(id=_make_call_id(talk), name=offered[BASH], arguments=arguments)
    return ModelAnswer(message=text, calls=(call,))


def _build_final_calls(
    text: str,
    talk: conversation.PracticeConversation,
    offered: dict[str, str],
    tools: Sequence[JsonRow],
) -> tuple[ToolCall, ...]:
    """Return the call that reports the end, for an agent with a tool for it; none for others."""
    name = next((offered[tool] for tool in FINAL_TOOLS if tool in offered), None)
    if name is None:
        return ()
    arguments = json.dumps(dict.fromkeys(conversation.list_tool_parameters(tools, name), text))
    return (ToolCall(id=_make_call_id(talk), name=name, arguments=arguments),)


class _CallRequest(Struct, frozen=True, kw_only=True):
    call: PlannedCall
    text: str
    in_parallel: tuple[PlannedCall, ...] = ()
    """Calls requested together with it."""


type _PlanGenerator[R] = Generator[_CallRequest, str, R]


class _PlanRunner:
    """One pass over a plan: yields call requests and is sent the text of each result."""

    def __init__(self, task: KnownTask, skill: ModelSkill) -> None:
        self._task = task
        self._skill = skill
        self._heard = blake2b(task.id.encode())
        self._made = 0
        self._failure = ""
        self._noticed: list[str] = []
        self._acted: set[str] = set()
        self._latest: dict[str, JsonRow] = {}
        self._beside: tuple[PlannedCall, ...] = ()

    def get_notices(self) -> tuple[str, ...]:
        """Return the problems noticed since the last request."""
        return tuple(self._noticed)

    def follow_plan(self) -> _PlanGenerator[str]:
        """Follow the plan; return the final answer."""
        results = StepResults()
        for nth, step in enumerate(self._task.plan):
            if step.condition is not None and not step.condition(results):
                continue
            together = takewhile(lambda other: other.in_parallel, self._task.plan[nth + 1 :])
            self._beside = tuple(_build_planned_call(other, results) for other in together)
            reading = yield from self._perform_step(step, results)
            if reading is None:
                reason = f"I stopped after {self._made} calls and changed nothing after that."
                return f"NOT DONE: {self._failure}\n{reason}"
            results = results.with_result(step.name, reading.row)
        return f"DONE: {self._task.final(results)}"

    def _perform_step(
        self, step: PlanStep, seen: StepResults
    ) -> _PlanGenerator[ResultReading | None]:
        call = _build_planned_call(step, seen)
        evidence = find_read_back(call) if self._skill.verifies else None
        if evidence is not None:
            return (yield from self._write_and_verify(call, evidence))
        if self._skill.verifies and _is_read_call(call):
            return (yield from self._read_twice(call))
        return (yield from self._get_usable_result(call))

    def _call_once(self, call: PlannedCall, text: str) -> _PlanGenerator[ResultReading]:
        noticed = [notice for notice in self._noticed if not notice.startswith(_IGNORED_PREFIX)]
        result = yield _CallRequest(
            call=call, text=" ".join([*noticed, text]), in_parallel=self._beside
        )
        self._noticed.clear()
        self._made += 1
        self._heard.update(f"{call.key}\n{result}\n".encode("utf-8", "replace"))
        return result_reader.read_tool_result(call, result)

    def _should_act_on(self, call: PlannedCall, trouble: str) -> bool:
        """Decide whether the model acts on a problem, drawn once for each call.

        After ignoring one the model stays careless, so that one fault meets one decision.
        """
        if self._skill.hopes:
            self._noticed.append(trouble)
            return False
        draw = int.from_bytes(self._heard.digest()[:8]) / 2**64
        if call.key not in self._acted and draw >= self._skill.p:
            self._skill = SKILLS["naive"]
            self._noticed.append(f"{_IGNORED_PREFIX}{trouble}")
            return False
        self._acted.add(call.key)
        self._noticed.append(trouble)
        return True

    def _get_usable_result(
        self, call: PlannedCall, text: str = ""
    ) -> _PlanGenerator[ResultReading | None]:
        """Return a usable result, a guess if the skill permits, or None after three tries."""
        text = text or f"Next I {call.why} with {call.tool}."
        for _ in repeat(None) if self._skill.stubborn else range(CALL_TRIES):
            reading = yield from self._call_once(call, text)
            if reading.problem is None or call.may_fail:
                self._latest[call.tool] = reading.row
                return reading
            trouble = f"{call.tool} failed: {reading.problem}."
            if not self._skill.retries or not self._should_act_on(call, trouble):
                return result_reader.guess_result(call, self._latest.get(call.tool, {}))
            text = f"I try {call.tool} again."
        self._failure = trouble
        return None

    def _read_twice(self, call: PlannedCall) -> _PlanGenerator[ResultReading | None]:
        """Read a value twice, and a third time if the two readings differ."""
        one = yield from self._get_usable_result(call)
        if one is None or one.guessed:
            return one
        two = yield from self._get_usable_result(
            call, f"I read {call.tool} again to be sure of it."
        )
        if two is None or two.guessed:
            return one if two else None
        if (trouble := _describe_differences(call.tool, one.full_result, two.full_result)) is None:
            return one
        if not self._should_act_on(call, trouble):
            return one
        three = yield from self._get_usable_result(call, f"I read {call.tool} a third time.")
        if three is None or three.full_result in (one.full_result, two.full_result):
            return three
        self._failure = f"{call.tool} failed: it gave three different results."
        return None

    def _write_and_verify(
        self, call: PlannedCall, evidence: ReadBack
    ) -> _PlanGenerator[ResultReading | None]:
        """Write, then read back; repeat the write only if the book shows that it had no effect."""
        text = f"Next I {call.why} with {call.tool}."
        for _ in range(CALL_TRIES):
            written = yield from self._call_once(call, text)
            trouble = f"{call.tool} failed: {written.problem}."
            if written.problem and not self._should_act_on(call, trouble):
                return result_reader.guess_result(call, self._latest.get(call.tool, {}))
            shown = yield from self._read_back(call, evidence)
            if shown is None:
                return None
            if shown.guessed:
                return result_reader.guess_result(call, {}) if written.problem else written
            if shown.row:
                return (yield from self._resolve_write(call, evidence, written, shown.row))
            trouble = f"{call.tool} has had no effect: {evidence.call.tool} does not show it."
            if not self._should_act_on(call, trouble):
                return written
            text = f"I repeat {call.tool}."
        reason = written.problem or f"{evidence.call.tool} does not show it"
        self._failure = f"{call.tool} failed: {reason}."
        return None

    def _read_back(
        self, call: PlannedCall, evidence: ReadBack
    ) -> _PlanGenerator[ResultReading | None]:
        """Return the row that proves a write, empty if two readings lack it."""
        row: JsonRow | None = None
        text = f"I read it back with {evidence.call.tool}."
        for attempt in (1, 2):
            reading = yield from self._get_usable_result(evidence.call, text)
            if reading is None or reading.guessed:
                return reading
            row = evidence.find(reading.full_result)
            if row is not None:
                break
            if attempt == 1:  # for every skill: a second look implies that it was noticed
                self._noticed.append(f"{evidence.call.tool} does not show it yet.")
                text = "I look again."
        return ResultReading(row=row or {})

    def _resolve_write(
        self, call: PlannedCall, evidence: ReadBack, done: ResultReading, shown: JsonRow
    ) -> _PlanGenerator[ResultReading | None]:
        """Return a write's result, resolving contradictions between its answer and the
        read-back.
        """
        if done.problem is not None:
            return ResultReading(row=shown)
        merged: JsonRow = {name: shown.get(name, value) for name, value in done.row.items()}
        trouble = _describe_differences(call.tool, done.row, merged)
        if trouble is None or not self._should_act_on(call, trouble):
            return done
        again = yield from self._get_usable_result(
            evidence.call, f"I read {evidence.call.tool} once more."
        )
        if again is None or again.guessed:
            return done if again else None
        return ResultReading(row=merged) if evidence.find(again.full_result) == shown else done


_IGNORED_PREFIX = "ignored: "
_KNOWN_TASKS: Mapping[str, PracticeTask | ShellTask] = {
    **ALL_TASKS,
    **SHELL_TASKS,
    **WORKSPACE_TASKS,
    FETCH_TASK.id: FETCH_TASK,
}


def _build_planned_call(step: PlanStep, seen: StepResults) -> PlannedCall:
    return PlannedCall(
        tool=step.tool,
        arguments=step.arguments(seen),
        why=step.why,
        rows=step.rows,
        pick=step.pick,
        may_fail=step.may_fail,
    )


def _is_read_call(call: PlannedCall) -> bool:
    if call.tool == BASH:
        return str(call.arguments.get("command")).startswith("cat ")
    return not ALL_TOOLS[call.tool].writes


def _describe_differences(tool: str, one: JsonRow, two: JsonRow) -> str | None:
    differences = "; ".join(find_result_differences(dict(one), dict(two)))
    return f"The results of {tool} differ in {differences}." if differences else None
