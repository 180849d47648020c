"""The model: what it answers is a pure function of the conversation, and skill lives here.

It plays its task from the beginning on every request. Each call it would make is looked up in
the conversation; where the results of that call are used up, this call is the answer. So it
finds its place again after retries, errors and calls it never asked for, and two requests with
the same conversation get the same answer, ids included.
"""

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import repeat, takewhile

from scenarios.practice import conversation, results, solver
from scenarios.practice.as_observed import FINAL
from scenarios.practice.elsewhere import FETCHING
from scenarios.practice.plan import Seen, Step, Task
from scenarios.practice.proofs import Proof, proof
from scenarios.practice.results import Call, Reading, differences
from scenarios.practice.schema import Row
from scenarios.practice.shell import SHELL_TASKS, SUBMIT, ShellTask
from scenarios.practice.shells import BASH, DELEGATE, Shell
from scenarios.practice.shells import offered as offered_shell
from scenarios.practice.solver import Solving, StageTask
from scenarios.practice.spoken import SPOKEN
from scenarios.practice.tasks import EVERY
from scenarios.practice.tools import TOOLS
from scenarios.practice.workspace import WORKSPACE_TASKS
from traces.step import Answer, ToolCall

type AnyTask = Task | ShellTask | StageTask

TRIES = 3
"""How often a call is made before the model gives up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """How careful the model is."""

    retries: bool = False
    """Repeats a call whose result is no use, and gives up honestly; else it guesses."""
    verifies: bool = False
    """Reads every value twice, and reads back after each write."""
    hopes: bool = False
    """Says what is wrong, and goes on all the same."""
    stubborn: bool = False
    """Repeats a call until it gets a result, and never gives up."""
    p: float = 1.0
    """The probability with which it acts on a trouble; else it goes on as if it had no skill."""
    solving: Solving | None = None
    """What it makes of the stages of the compiler pipeline; None for every other model."""


def skill(model: str) -> Skill | None:
    """The skill a model name stands for; None where no such model is served."""
    name = model.removeprefix("openai/").removeprefix("practice/")
    if name.partition(":")[0] == solver.NAME:
        return _solver(name.partition(":")[2])
    if name.startswith("p="):
        try:
            p = float(name.removeprefix("p="))
        except ValueError:
            return None
        return Skill(retries=True, verifies=True, p=p) if 0 <= p <= 1 else None
    return SKILLS.get(name)


def _solver(words: str) -> Skill | None:
    """`T1=good,verifies`: a skill among the words is the solver's, else it retries."""
    own = [word for word in words.split(",") if word]
    found = SKILLS[next((word for word in own if word in SKILLS), "retries")]
    asked = solver.solving([word for word in own if word not in SKILLS])
    return None if asked is None else replace(found, solving=asked)


SKILLS = {
    "naive": Skill(),
    "retries": Skill(retries=True),
    "verifies": Skill(retries=True, verifies=True),
    "hopes": Skill(retries=True, verifies=True, hopes=True),
    "stubborn": Skill(retries=True, stubborn=True),
}


def next_answer(
    messages: Sequence[Row], tools: Sequence[Row], skill: Skill
) -> tuple[Answer, tuple[str, ...]]:
    """What the model says next, and what it has noticed since it spoke last."""
    offered, shell = (
        conversation.names(tools, (*TOOLS, BASH, DELEGATE, FINAL)),
        offered_shell(tools),
    )
    if shell is not None:
        offered[BASH] = shell.tool
    talk, task = _placed(messages, offered, shell, skill)
    if not tools and (said := SPOKEN.get(talk.task or "")) is not None:
        return Answer(message=said), ()
    if task is None or not tools:
        return Answer(message="NOT DONE: there is no task I know in this conversation."), ()
    player = _Player(task, skill)
    play, left = player.play(), {call: iter(texts) for call, texts in talk.results.items()}
    try:
        ask = next(play)
        while (text := next(left.get(ask.call.key, iter(())), None)) is not None:
            ask = play.send(text)
    except StopIteration as stop:
        final: str = stop.value
        return _final(final, task, talk, offered, shell), player.said()
    wanted = [ask.call, *(call for call in ask.beside if call.key not in talk.results)]
    if missing := next((call.tool for call in wanted if call.tool not in offered), None):
        return Answer(message=f"NOT DONE: there is no tool {missing} here."), player.said()
    calls = tuple(
        ToolCall(id=_id(talk, nth), name=offered[call.tool], arguments=_written(call, shell))
        for nth, call in enumerate(wanted)
    )
    return Answer(message=ask.text, calls=calls), player.said()


def _placed(
    messages: Sequence[Row], offered: Mapping[str, str], shell: Shell | None, skill: Skill
) -> tuple[conversation.Talk, AnyTask | None]:
    """The conversation and its task; of a solver's, what was said since the last stage began."""
    whole = conversation.read(messages, offered, shell)
    if skill.solving is None:
        return whole, _TASKS.get(whole.task or "")
    if (asked := solver.begun(messages)) is None:
        return whole, None
    stage, at = asked
    since = conversation.read(messages[at:], offered, shell)
    return replace(since, digest=whole.digest), solver.task(stage, skill.solving)


def _id(talk: conversation.Talk, nth: int = 0) -> str:
    return f"call_{talk.digest[:24]}" + (f"_{nth}" if nth else "")


def _written(call: Call, shell: Shell | None) -> str:
    if call.tool == BASH and shell is not None:
        return shell.written(call.arguments)
    return call.written


def _final(
    text: str,
    task: AnyTask,
    talk: conversation.Talk,
    offered: dict[str, str],
    shell: Shell | None,
) -> Answer:
    """The last answer. An agent with only `bash` must be told by a command; after it, in words."""
    arguments = json.dumps({"command": SUBMIT})
    told = conversation.key(BASH, arguments) in talk.results
    if isinstance(task, Task) or told or (shell is not None and shell.tool != BASH):
        return Answer(message=text, calls=_last(text, talk, offered))
    call = ToolCall(id=_id(talk), name=offered[BASH], arguments=arguments)
    return Answer(message=text, calls=(call,))


def _last(text: str, talk: conversation.Talk, offered: dict[str, str]) -> tuple[ToolCall, ...]:
    """The call that tells the end to an agent which has a tool for that; none to others."""
    if FINAL not in offered:
        return ()
    arguments = json.dumps({"answer": text})
    return (ToolCall(id=_id(talk), name=offered[FINAL], arguments=arguments),)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    call: Call
    text: str
    beside: tuple[Call, ...] = ()
    """What is asked for together with it."""


type _Play[R] = Generator[_Ask, str, R]


class _Player:
    """One playing of a task: yields what to ask, is sent the result's text."""

    def __init__(self, task: AnyTask, skill: Skill) -> None:
        self._task = task
        self._skill = skill
        self._heard = blake2b(task.id.encode())
        self._made = 0
        self._failure = ""
        self._noticed: list[str] = []
        self._acted: set[str] = set()
        self._latest: dict[str, Row] = {}
        self._beside: tuple[Call, ...] = ()

    def said(self) -> tuple[str, ...]:
        """What was noticed since the last ask."""
        return tuple(self._noticed)

    def play(self) -> _Play[str]:
        """Follow the plan; returns the final answer."""
        seen = Seen()
        for nth, step in enumerate(self._task.plan):
            if step.only is not None and not step.only(seen):
                continue
            together = takewhile(lambda other: other.beside, self._task.plan[nth + 1 :])
            self._beside = tuple(_call(other, seen) for other in together)
            reading = yield from self._perform(step, seen)
            if reading is None:
                stopped = f"I stopped after {self._made} calls and changed nothing after that."
                return f"NOT DONE: {self._failure}\n{stopped}"
            seen = seen.plus(step.name, reading.row)
        return f"DONE: {self._task.final(seen)}"

    def _perform(self, step: Step, seen: Seen) -> _Play[Reading | None]:
        call = _call(step, seen)
        evidence = proof(call) if self._skill.verifies else None
        if evidence is not None:
            return (yield from self._write(call, evidence))
        if self._skill.verifies and _reads(call):
            return (yield from self._read(call))
        return (yield from self._usable(call))

    def _once(self, call: Call, text: str) -> _Play[Reading]:
        noticed = [notice for notice in self._noticed if not notice.startswith(_IGNORED)]
        result = yield _Ask(call=call, text=" ".join([*noticed, text]), beside=self._beside)
        self._noticed.clear()
        self._made += 1
        self._heard.update(f"{call.key}\n{result}\n".encode("utf-8", "replace"))
        return results.read(call, result)

    def _acts_on(self, call: Call, trouble: str) -> bool:
        """Whether the model does something about a trouble, drawn once for each call.

        Who lets one pass is careless from then on, so that one fault meets one decision.
        """
        if self._skill.hopes:
            self._noticed.append(trouble)
            return False
        draw = int.from_bytes(self._heard.digest()[:8]) / 2**64
        if call.key not in self._acted and draw >= self._skill.p:
            self._skill = SKILLS["naive"]
            self._noticed.append(f"{_IGNORED}{trouble}")
            return False
        self._acted.add(call.key)
        self._noticed.append(trouble)
        return True

    def _usable(self, call: Call, text: str = "") -> _Play[Reading | None]:
        """A usable result, a guess where the skill does not mind, None after three tries."""
        text = text or f"Next I {call.why} with {call.tool}."
        for _ in repeat(None) if self._skill.stubborn else range(TRIES):
            reading = yield from self._once(call, text)
            if reading.problem is None or call.may_fail:
                self._latest[call.tool] = reading.row
                return reading
            trouble = f"{call.tool} failed: {reading.problem}."
            if not self._skill.retries or not self._acts_on(call, trouble):
                return results.guess(call, self._latest.get(call.tool, {}))
            text = f"I try {call.tool} again."
        self._failure = trouble
        return None

    def _read(self, call: Call) -> _Play[Reading | None]:
        """A value read twice, and a third time where the two readings differ."""
        one = yield from self._usable(call)
        if one is None or one.guessed:
            return one
        two = yield from self._usable(call, f"I read {call.tool} again to be sure of it.")
        if two is None or two.guessed:
            return one if two else None
        if (trouble := _differing(call.tool, one.whole, two.whole)) is None:
            return one
        if not self._acts_on(call, trouble):
            return one
        three = yield from self._usable(call, f"I read {call.tool} a third time.")
        if three is None or three.whole in (one.whole, two.whole):
            return three
        self._failure = f"{call.tool} failed: it gave three different results."
        return None

    def _write(self, call: Call, evidence: Proof) -> _Play[Reading | None]:
        """A write, read back; repeated only where the book shows that it had no effect."""
        text = f"Next I {call.why} with {call.tool}."
        for _ in range(TRIES):
            done = yield from self._once(call, text)
            trouble = f"{call.tool} failed: {done.problem}."
            if done.problem and not self._acts_on(call, trouble):
                return results.guess(call, self._latest.get(call.tool, {}))
            shown = yield from self._shown(call, evidence)
            if shown is None:
                return None
            if shown.guessed:
                return results.guess(call, {}) if done.problem else done
            if shown.row:
                return (yield from self._settled(call, evidence, done, shown.row))
            trouble = f"{call.tool} has had no effect: {evidence.call.tool} does not show it."
            if not self._acts_on(call, trouble):
                return done
            text = f"I repeat {call.tool}."
        why = done.problem or f"{evidence.call.tool} does not show it"
        self._failure = f"{call.tool} failed: {why}."
        return None

    def _shown(self, call: Call, evidence: Proof) -> _Play[Reading | None]:
        """The row that proves a write, empty if two readings do not have it."""
        found: Row | None = None
        text = f"I read it back with {evidence.call.tool}."
        for look in (1, 2):
            reading = yield from self._usable(evidence.call, text)
            if reading is None or reading.guessed:
                return reading
            found = evidence.find(reading.whole)
            if found is not None:
                break
            if look == 1:  # whatever the skill: who looks again has seen that it is not there
                self._noticed.append(f"{evidence.call.tool} does not show it yet.")
                text = "I look again."
        return Reading(row=found or {})

    def _settled(
        self, call: Call, evidence: Proof, done: Reading, shown: Row
    ) -> _Play[Reading | None]:
        """What a write gave, where its answer and the reading back may contradict each other."""
        if done.problem is not None:
            return Reading(row=shown)
        both: Row = {name: shown.get(name, value) for name, value in done.row.items()}
        trouble = _differing(call.tool, done.row, both)
        if trouble is None or not self._acts_on(call, trouble):
            return done
        again = yield from self._usable(evidence.call, f"I read {evidence.call.tool} once more.")
        if again is None or again.guessed:
            return done if again else None
        return Reading(row=both) if evidence.find(again.whole) == shown else done


_IGNORED = "ignored: "
_TASKS: Mapping[str, Task | ShellTask] = {
    **EVERY,
    **SHELL_TASKS,
    **WORKSPACE_TASKS,
    FETCHING.id: FETCHING,
}


def _call(step: Step, seen: Seen) -> Call:
    return Call(
        tool=step.tool,
        arguments=step.arguments(seen),
        why=step.why,
        rows=step.rows,
        pick=step.pick,
        may_fail=step.may_fail,
    )


def _reads(call: Call) -> bool:
    if call.tool == BASH:
        return str(call.arguments.get("command")).startswith("cat ")
    return not TOOLS[call.tool].writes


def _differing(tool: str, one: Row, two: Row) -> str | None:
    found = "; ".join(differences(dict(one), dict(two)))
    return f"The results of {tool} differ in {found}." if found else None
