"""The scripted solver of the compiler pipeline: it writes prepared programs of a known quality.

A model named `practice/solver:T1=good,T2=half,T3=skip,verifies` looks at a stage's task, reads the
part of the language page that its program depends on, writes the program, checks it, and writes
it once more if the check says that samples are wrong. What it reads goes into what it writes: the
table of signs, the order of operators, the registers that are kept. So a lie about a file ends
in a wrong program, unless the skill reads twice (`verifies`). Stages that are not named are
`good`; `skip` is said to be left for later, with nothing done.

Troubles are asked for in the name too: `context=N` refuses a conversation of more than N tokens
as too long, `busy=K` answers 429 when the Kth turn of a conversation is asked for the first time,
`noargs` calls the shell without its command before the program is written.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from scenarios.compiler import solutions
from scenarios.compiler.contract import STAGES
from scenarios.practice.conversation import text
from scenarios.practice.plan import Arguments, Seen, Step
from scenarios.practice.schema import Row
from scenarios.practice.shells import BASH

NAME = "solver"
SKIP = "skip"
END = "END_OF_PROGRAM"
_ASKED = re.compile(r"\bstage (T[0-5])\b")
_MAIN = 'if __name__ == "__main__":'


@dataclass(frozen=True, slots=True, kw_only=True)
class Solving:
    """What a solver's name asks for."""

    qualities: tuple[tuple[str, str], ...] = ()
    """Stage and quality."""
    context: int | None = None
    """Tokens of the longest conversation that it takes."""
    busy: int | None = None
    """The turn that is refused when it is asked for the first time."""
    noargs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Woven:
    """What a program takes from a page: a constant, computed from what was read."""

    command: str
    constant: str
    value: Callable[[str], object]
    before: str = _MAIN
    """The line in the program before which it is set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTask:
    """One stage, as the model works on it."""

    id: str
    plan: tuple[Step, ...]

    def final(self, seen: Seen) -> str:
        """What to tell the user."""
        if not self.plan:
            return f"I leave {self.id} as it is for now."
        return f"{self.id} is written. The check says: {_last(_checked(seen))}"


def solving(words: Sequence[str]) -> Solving | None:
    """What the words of a name ask for; None where one of them is not known."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        stage = name in STAGES and value in (*solutions.QUALITIES, SKIP)
        number = name in ("context", "busy") and value.isdigit()
        if not (stage or number or (name == "noargs" and not equals)):
            return None
        found[name] = value
    return Solving(
        qualities=tuple((name, value) for name, value in found.items() if name in STAGES),
        context=int(found["context"]) if "context" in found else None,
        busy=int(found["busy"]) if "busy" in found else None,
        noargs="noargs" in found,
    )


def begun(messages: Sequence[Row]) -> tuple[str, int] | None:
    """The stage that was asked for last, and the message that did; None where none was."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].get("role") == "user" and (
            found := _ASKED.findall(text(messages[at].get("content")))
        ):
            return found[-1], at
    return None


@cache
def task(stage: str, asked: Solving) -> StageTask:
    """What the model does for a stage."""
    quality = dict(asked.qualities).get(stage, "good")
    return StageTask(id=stage, plan=() if quality == SKIP else _plan(stage, quality, asked.noargs))


def _plan(stage: str, quality: str, noargs: bool) -> tuple[Step, ...]:
    folder, woven = stage.lower(), WOVEN[stage]
    program = solutions.text(stage, quality)

    def write(step: str) -> Callable[[Seen], str]:
        return lambda seen: _written(folder, program, woven, seen.text(step, "output"))

    steps = [
        _bash("look", "look around", f"ls {folder}"),
        _bash("task", "read the task", f"cat {folder}/TASK.md"),
        _bash("page", "read what it depends on", woven.command),
    ]
    if noargs:
        steps.append(Step(name="slip", why="write it", tool=BASH, arguments=_none, may_fail=True))
    if program is not None:
        steps.append(_bash("write", "write the program", write("page")))
    steps.append(_bash("check", "check it", f"./check {folder}", fails=True))
    if program is not None:
        steps += [
            _bash("again", "read it once more", woven.command, only=_wrong),
            _bash("rewrite", "write the program again", write("again"), only=_wrong),
            _bash("recheck", "check it again", f"./check {folder}", fails=True, only=_wrong),
        ]
    return tuple(steps)


def _none(_: Seen) -> Arguments:
    return {}


def _bash(
    name: str,
    why: str,
    command: str | Callable[[Seen], str],
    *,
    fails: bool = False,
    only: Callable[[Seen], bool] | None = None,
) -> Step:
    return Step(
        name=name,
        why=why,
        tool=BASH,
        arguments=lambda seen: {"command": command if isinstance(command, str) else command(seen)},
        may_fail=fails,
        only=only,
    )


def _written(folder: str, program: str | None, woven: Woven, read: str) -> str:
    """The command that writes a program, with what was read in it."""
    line = f"{woven.constant} = {woven.value(read)!r}  # as the page says\n"
    whole = (program or "").replace(woven.before, f"{line}\n{woven.before}")
    ends = "" if whole.endswith("\n") else "\n"
    into = f"{folder}/run"
    return f"mkdir -p {folder}; cat > {into} << '{END}'\n{whole}{ends}{END}\nchmod +x {into}"


def _wrong(seen: Seen) -> bool:
    """Whether the check says that something is not right."""
    counted = re.search(r": (\d+) of (\d+) samples are right", _output(seen, "check"))
    return counted is not None and counted[1] != counted[2]


def _output(seen: Seen, step: str) -> str:
    """What a command printed; nothing where its result was cut."""
    return seen.text(step, "output") if seen.has(step, "output") else ""


def _checked(seen: Seen) -> str:
    return _output(seen, "recheck" if seen.has("recheck", "output") else "check")


def _last(output: str) -> str:
    return (output.strip().splitlines() or ["nothing"])[-1]


def _section(number: int) -> str:
    return f"cat LANGUAGE.md | sed -n '/^## {number}/,/^## {number + 1}/p'"


def _flags(read: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(re.findall(r"--target=\S+|-march=\S+|-mabi=\S+|-O\d", read)))


def _signs(read: str) -> dict[str, str]:
    pairs = re.findall(r"`([^`\s]+)` ([a-z]+(?:_[a-z]+)?) (?=\|)", read)
    return {sign.replace("\\|", "|"): name for sign, name in pairs}


def _tightness(read: str) -> dict[str, int]:
    """Of the line with all binary operators, from the tightest to the loosest."""
    line = next((line for line in read.splitlines() if line.startswith("* / %")), "")
    groups = re.split(r"\s{2,}", line)
    return {sign: len(groups) - at for at, group in enumerate(groups) for sign in group.split()}


def _runtime(read: str) -> list[tuple[str, str, str]]:
    """What each function of the runtime gives, its name, and what it takes."""
    return re.findall(r"^\| `(int|void) (\w+)\((void|int value)\)`", read, re.MULTILINE)


def _declared(read: str) -> str:
    kinds = {"int": "signext i32", "void": "void"}
    takes = {"void": "", "int value": "i32 signext"}
    lines = [f"declare {kinds[gives]} @{name}({takes[of]})" for gives, name, of in _runtime(read)]
    return "\n".join([*lines, "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)", ""])


def _spoken(read: str) -> frozenset[str]:
    return frozenset(f"@{name}" for _, name, _ in _runtime(read))


def _kept(read: str) -> list[str]:
    """All registers that are kept but s0."""
    last = re.search(r"`s0`-`s(\d+)`", read)
    return [f"s{number}" for number in range(1, int(last[1]) + 1)] if last else []


WOVEN: Mapping[str, Woven] = {
    "T0": Woven(command="cat TASK.md t0/TASK.md", constant="TARGET", value=_flags),
    "T1": Woven(
        command=_section(4), constant="SIGNS", value=_signs, before="LONGEST_FIRST = sorted"
    ),
    "T2": Woven(command=_section(2), constant="TIGHTNESS", value=_tightness),
    "T3": Woven(command=_section(3), constant="RUNTIME", value=_declared),
    "T4": Woven(command=_section(3), constant="SPOKEN", value=_spoken),
    "T5": Woven(command=_section(7), constant="KEPT", value=_kept),
}
