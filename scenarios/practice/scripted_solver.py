"""The scripted solver of the compiler pipeline: it writes prepared programs of a known quality.

A model named `practice/solver:T1=good,T2=half,T3=skip,verifies` reads a stage's task and the part
of the language page that its program depends on, writes the program, checks it, and writes it again
if the check reports wrong samples. The text it reads becomes part of the program: the table of
operators, their precedence, the saved registers. So a corrupted file results in a wrong program,
unless the skill reads twice (`verifies`). T0's build fails at first: it is tried and changed by
what the tools report, until it works. Stages that are not named are `good`; a stage of quality
`skip` is reported as left for later, with nothing done.

Provider errors are requested in the name too: `context=N` refuses a conversation of more than N
tokens as too long, `busy=K` answers 429 to the first request for the Kth turn of a conversation,
`noargs` calls the shell without its command before the program is written.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

from msgspec import Struct

from scenarios.pipeline.compiler import solutions
from scenarios.pipeline.compiler.solutions.build_mends import BUILD_MENDS, find_build_mend
from scenarios.pipeline.compiler.types import STAGES
from scenarios.practice.conversation import get_content_text
from scenarios.practice.shell_tool_names import BASH
from scenarios.practice.tasks.plan import PlanStep, StepResults, ToolArguments
from scenarios.practice.tools.json_schema import JsonRow

SOLVER_NAME = "solver"
SKIP_QUALITY = "skip"
HEREDOC_END = "END_OF_PROGRAM"
_STAGE_REQUEST = re.compile(r"\bstage (T[0-5])\b")
_BUILD_ERROR = "build: "
"""The beginning of what the check says of a build that fails, after the stage's name."""
_MAIN_LINE = 'if __name__ == "__main__":'


class SolverOptions(Struct, frozen=True, kw_only=True):
    """The options in a solver's name."""

    qualities: tuple[tuple[str, str], ...] = ()
    """Pairs of stage and quality."""
    context_tokens: int | None = None
    """Longest accepted conversation in tokens."""
    busy_turn: int | None = None
    """The turn whose first request is refused."""
    omits_arguments: bool = False


class PageConstant(Struct, frozen=True, kw_only=True):
    """A constant of a program, computed from a page that was read."""

    command: str
    constant: str
    value: Callable[[str], object]
    before: str = _MAIN_LINE
    """The line of the program before which it is inserted."""


class StageTask(Struct, frozen=True, kw_only=True):
    """The model's plan for one stage."""

    id: str
    plan: tuple[PlanStep, ...]

    def final(self, seen: StepResults) -> str:
        """Return the report to the user."""
        if not self.plan:
            return f"I leave {self.id} as it is for now."
        return f"{self.id} is written. The check says: {_get_last_line(_get_check_output(seen))}"


def parse_solver_options(words: Sequence[str]) -> SolverOptions | None:
    """Parse the options in a name; None if one of them is unknown."""
    options: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        stage = name in STAGES and value in (*solutions.QUALITIES, SKIP_QUALITY)
        number = name in ("context", "busy") and value.isdigit()
        if not (stage or number or (name == "noargs" and not equals)):
            return None
        options[name] = value
    return SolverOptions(
        qualities=tuple((name, value) for name, value in options.items() if name in STAGES),
        context_tokens=int(options["context"]) if "context" in options else None,
        busy_turn=int(options["busy"]) if "busy" in options else None,
        omits_arguments="noargs" in options,
    )


def find_requested_stage(messages: Sequence[JsonRow]) -> tuple[str, int] | None:
    """Return the stage requested last and the index of its message; None if there is none."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].get("role") == "user" and (
            stages := _STAGE_REQUEST.findall(get_content_text(messages[at].get("content")))
        ):
            return stages[-1], at
    return None


@cache
def build_stage_task(stage: str, asked: SolverOptions) -> StageTask:
    """Build the model's plan for a stage."""
    quality = dict(asked.qualities).get(stage, "good")
    return StageTask(
        id=stage,
        plan=() if quality == SKIP_QUALITY else _plan_stage(stage, quality, asked.omits_arguments),
    )


def _plan_stage(stage: str, quality: str, noargs: bool) -> tuple[PlanStep, ...]:
    folder, woven = stage.lower(), PAGE_CONSTANTS[stage]
    program = solutions.load_solution(stage, quality)

    def write(step: str) -> Callable[[StepResults], str]:
        return lambda seen: _build_write_command(
            folder, program, woven, seen.get_text(step, "output")
        )

    steps = [
        _make_bash_step("look", "look around", f"ls {folder}"),
        _make_bash_step("task", "read the task", f"cat {folder}/TASK.md"),
        *(_plan_build(folder) if stage == "T0" and program is not None else ()),
        _make_bash_step("page", "read what it depends on", woven.command),
    ]
    if noargs:
        steps.append(
            PlanStep(
                name="slip", why="write it", tool=BASH, arguments=_build_no_arguments, may_fail=True
            )
        )
    if program is not None:
        steps.append(_make_bash_step("write", "write the program", write("page")))
    steps.append(_make_bash_step("check", "check it", f"./check {folder}", fails=True))
    if program is not None:
        steps += [
            _make_bash_step("again", "read it once more", woven.command, only=_has_wrong_samples),
            _make_bash_step(
                "rewrite", "write the program again", write("again"), only=_has_wrong_samples
            ),
            _make_bash_step(
                "recheck",
                "check it again",
                f"./check {folder}",
                fails=True,
                only=_has_wrong_samples,
            ),
        ]
    return tuple(steps)


def _plan_build(folder: str) -> list[PlanStep]:
    """Plan to try a build until it works: once more than there are known errors, and once for a
    result that says nothing.
    """
    steps: list[PlanStep] = []
    tries = [f"try{number}" for number in range(len(BUILD_MENDS) + 2)]
    for number, tried in enumerate(tries):
        steps += [
            _make_bash_step(
                tried,
                "see if its build works",
                f"./check {folder}",
                fails=True,
                only=partial(_may_be_broken, tries=tries[:number]),
            ),
            _make_bash_step(
                f"mend{number}",
                "change what the error says",
                partial(_build_mend_command, folder, tried),
                only=partial(_knows_error, step=tried),
            ),
        ]
    return steps


def _may_be_broken(seen: StepResults, *, tries: Sequence[str]) -> bool:
    """Return whether no check so far came to what follows the build."""
    outputs = [_get_step_output(seen, step) for step in tries]
    return not any(": " in said and _BUILD_ERROR not in said for said in outputs)


def _knows_error(seen: StepResults, *, step: str) -> bool:
    return find_build_mend(_get_step_output(seen, step)) is not None


def _build_mend_command(folder: str, step: str, seen: StepResults) -> str:
    mend = find_build_mend(_get_step_output(seen, step))
    return f"sed -i 's|{mend.was}|{mend.becomes}|' {folder}/build" if mend else "true"


def _build_no_arguments(_: StepResults) -> ToolArguments:
    return {}


def _make_bash_step(
    name: str,
    why: str,
    command: str | Callable[[StepResults], str],
    *,
    fails: bool = False,
    only: Callable[[StepResults], bool] | None = None,
) -> PlanStep:
    return PlanStep(
        name=name,
        why=why,
        tool=BASH,
        arguments=lambda seen: {"command": command if isinstance(command, str) else command(seen)},
        may_fail=fails,
        condition=only,
    )


def _build_write_command(folder: str, program: str | None, woven: PageConstant, read: str) -> str:
    """Return the command that writes a program with the constant inserted."""
    line = f"{woven.constant} = {woven.value(read)!r}  # as the page says\n"
    source = (program or "").replace(woven.before, f"{line}\n{woven.before}")
    newline = "" if source.endswith("\n") else "\n"
    path = f"{folder}/run"
    return (
        f"mkdir -p {folder}; cat > {path} << "
        f"'{HEREDOC_END}'\n{source}{newline}{HEREDOC_END}\nchmod +x {path}"
    )


def _has_wrong_samples(seen: StepResults) -> bool:
    """Return whether the check reported a wrong sample."""
    match = re.search(r": (\d+) of (\d+) samples are right", _get_step_output(seen, "check"))
    return match is not None and match[1] != match[2]


def _get_step_output(seen: StepResults, step: str) -> str:
    """Return the output of a command; empty if its result was truncated."""
    return seen.get_text(step, "output") if seen.has_field(step, "output") else ""


def _get_check_output(seen: StepResults) -> str:
    return _get_step_output(seen, "recheck" if seen.has_field("recheck", "output") else "check")


def _get_last_line(output: str) -> str:
    return (output.strip().splitlines() or ["nothing"])[-1]


def _build_section_command(number: int) -> str:
    return f"cat LANGUAGE.md | sed -n '/^## {number}/,/^## {number + 1}/p'"


def _find_compiler_flags(read: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(re.findall(r"--target=\S+|-march=\S+|-mabi=\S+|-O\d", read)))


def _find_token_signs(read: str) -> dict[str, str]:
    pairs = re.findall(r"`([^`\s]+)` ([a-z]+(?:_[a-z]+)?) (?=\|)", read)
    return {sign.replace("\\|", "|"): name for sign, name in pairs}


def _find_operator_precedence(read: str) -> dict[str, int]:
    """Parse the line with all binary operators, from the tightest to the loosest."""
    line = next((line for line in read.splitlines() if line.startswith("* / %")), "")
    groups = re.split(r"\s{2,}", line)
    return {sign: len(groups) - at for at, group in enumerate(groups) for sign in group.split()}


def _find_runtime_functions(read: str) -> list[tuple[str, str, str]]:
    """Return result type, name and parameters of each runtime function."""
    return re.findall(r"^\| `(int|void) (\w+)\((void|int value)\)`", read, re.MULTILINE)


def _build_llvm_declarations(read: str) -> str:
    kinds = {"int": "signext i32", "void": "void"}
    takes = {"void": "", "int value": "i32 signext"}
    lines = [
        f"declare {kinds[gives]} @{name}({takes[of]})"
        for gives, name, of in _find_runtime_functions(read)
    ]
    return "\n".join([*lines, "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)", ""])


def _find_runtime_symbols(read: str) -> frozenset[str]:
    return frozenset(f"@{name}" for _, name, _ in _find_runtime_functions(read))


def _find_saved_registers(read: str) -> list[str]:
    """Return all callee-saved registers except s0."""
    match = re.search(r"`s0`-`s(\d+)`", read)
    return [f"s{number}" for number in range(1, int(match[1]) + 1)] if match else []


PAGE_CONSTANTS: Mapping[str, PageConstant] = {
    "T0": PageConstant(
        command="cat t0/build 2>/dev/null || cat t0/TASK.md",
        constant="TARGET",
        value=_find_compiler_flags,
    ),
    "T1": PageConstant(
        command=_build_section_command(4),
        constant="SIGNS",
        value=_find_token_signs,
        before="LONGEST_FIRST = sorted",
    ),
    "T2": PageConstant(
        command=_build_section_command(2), constant="TIGHTNESS", value=_find_operator_precedence
    ),
    "T3": PageConstant(
        command=_build_section_command(3), constant="RUNTIME", value=_build_llvm_declarations
    ),
    "T4": PageConstant(
        command=_build_section_command(3), constant="SPOKEN", value=_find_runtime_symbols
    ),
    "T5": PageConstant(
        command=_build_section_command(7), constant="KEPT", value=_find_saved_registers
    ),
}
