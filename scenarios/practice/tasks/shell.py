"""Tasks for agents whose only tool is a shell, such as mini-swe-agent.

Wire fact: mini-swe-agent 2 offers one tool `bash` with {"command": ...}, shows the model
{"returncode": ..., "output": ...} as JSON, and ends when a command prints SUBMIT alone; its version
1 showed `<returncode>` and `<output>` tags. Codex shows lines about the command, then `Output:` and
the output. Gemini CLI shows `Output:` and the output between two tags, then lines about the
command: its exit code if that is not 0, and its process group; qwen-code shows the same lines
without tags, after the command. OpenHands appends the exit code and more in brackets to the output.
Vibe shows JSON with `stdout`, Cline a list of JSON objects with `result` and `success`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct, field

from scenarios.practice.shell_tool_names import BASH
from scenarios.practice.tasks.plan import PlanStep, StepResults
from scenarios.practice.tools.json_schema import Json, JsonSchema, build_json_schema
from scenarios.world import Verdict

SUBMIT_COMMAND = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
SHELL_RESULT_SCHEMA: JsonSchema = {
    "type": "object",
    "properties": {"returncode": build_json_schema(int), "output": build_json_schema(str)},
    "required": ["returncode", "output"],
}

_TAGGED_RESULT = re.compile(
    r"<returncode>(-?\d+)</returncode>\s*<output>\n?(.*?)\n?</output>", re.DOTALL
)


_CODEX_RESULT = re.compile(
    r"\A(?:Chunk ID: .*\n)?Wall time: .*\nProcess exited with code (-?\d+)\n(?:.*\n)*?Output:\n"
)

_GEMINI_CLI_RESULT = re.compile(
    r"\A(?:<untrusted_context>\n|Command: .*?\nDirectory: .*\n)Output: (.*?)\n"
    r"(?:Error: .*\n)?(?:Exit Code: (-?\d+)\n)?(?:[A-Z][\w ]+: .*\n?)*(?:</untrusted_context>)?\Z",
    re.DOTALL,
)

_OPENHANDS_RESULT = re.compile(
    r"\A(.*?)\n\[The command completed with exit code (-?\d+)\.\]\n(?:\[.*\]\n?)*\Z", re.DOTALL
)


def parse_shell_result(text: str) -> dict[str, Json] | None:
    """Parse exit code and output of a command from an agent's tool result; None if truncated."""
    if match := _TAGGED_RESULT.search(text):
        return {"returncode": int(match[1]), "output": match[2]}
    if match := _CODEX_RESULT.match(text):
        return {"returncode": int(match[1]), "output": text[match.end() :]}
    if match := _GEMINI_CLI_RESULT.match(text):
        output = "" if match[1] == "(empty)" else match[1]
        return {"returncode": int(match[2] or 0), "output": output}
    if match := _OPENHANDS_RESULT.match(text):
        return {"returncode": int(match[2]), "output": match[1]}
    if not text.startswith(("{", "[{", "<returncode>")):
        return {"returncode": 0, "output": text}
    try:
        parsed = json.loads(text)
    except ValueError:
        return None
    match parsed:
        case [{"result": str(output), "success": bool(success)}]:
            return {"returncode": int(not success), "output": output}
        case {"returncode": int(code), "stdout": str(output)}:
            return {"returncode": code, "output": output}
    return {**parsed} if isinstance(parsed, dict) else None


def find_shell_failure(arguments: Mapping[str, Json], whole: Mapping[str, Json]) -> str | None:
    """Return why the result of a command is unusable; None if it is usable."""
    output = str(whole["output"]).strip()
    if whole["returncode"] != 0:
        return f"return code {whole['returncode']}: {output[-80:]}"
    if str(arguments.get("command")).startswith("cat ") and not output:
        return f"{arguments['command']} printed nothing"
    return None


class ShellTask(Struct, frozen=True, kw_only=True):
    """A task in a folder: like a PracticeTask, but its end state is files."""

    id: str
    prompt: str
    files: Mapping[str, str]
    """The expected content of each file at the end, compared without regard to white space."""
    plan: tuple[PlanStep, ...]
    start: Mapping[str, str] = field(default_factory=dict)
    """The files that must exist before the task starts."""

    def final(self, seen: StepResults) -> str:
        """Return the final answer to the user."""
        return f"the total is {sum_numbers(seen, 'figures')} and the report holds it."


def write_start_files(folder: Path, task: ShellTask) -> None:
    """Write the task's start files."""
    for name, text in task.start.items():
        (folder / name).write_text(text, "utf-8")


def verify_shell_task(folder: Path, task: ShellTask) -> Verdict:
    """Return whether the folder has the files that the task demands; other files do not matter."""
    differences = tuple(_compare_task_files(folder, task))
    return Verdict(passed=not differences, detail="; ".join(differences))


def _compare_task_files(folder: Path, task: ShellTask) -> Iterator[str]:
    for name, expected in task.files.items():
        try:
            content = (folder / name).read_text("utf-8", "replace")
        except FileNotFoundError:
            yield f"{name} is missing"
        else:
            if content.split() != expected.split():
                yield f"{name} holds {content!r}, not {expected!r}"


def sum_numbers(seen: StepResults, step: str) -> int:
    """Return the sum of the integers that a command printed, one at the end of each line."""
    lines = re.findall(r"(-?\d+)\s*$", seen.get_text(step, "output"), re.MULTILINE)
    return sum(map(int, lines))


def _build_figures_task(id: str, figures: Mapping[str, int], percent: int) -> ShellTask:
    lines = "".join(f"{name} {value}\n" for name, value in figures.items())
    total = sum(figures.values())
    share = total * percent // 100
    report = f"total {total}\nshare {share}\n"
    prompt = f"""\
Work in the current folder, with these figures: {", ".join(lines.splitlines())}.
1. Write them into figures.txt, one per line, name and number.
2. Read the file and write the sum of its numbers into total.txt.
3. Write {percent} % of the total, rounded down, into share.txt.
4. Write report.txt with the two lines "total <total>" and "share <share>", read from the files.
task: {id}
"""

    def command(name: str, why: str, text: str) -> PlanStep:
        return PlanStep(name=name, why=why, tool=BASH, arguments=lambda _: {"command": text})

    return ShellTask(
        id=id,
        prompt=prompt,
        files={
            "figures.txt": lines,
            "total.txt": f"{total}\n",
            "share.txt": f"{share}\n",
            "report.txt": report,
        },
        plan=(
            command("start", "look around", "pwd"),
            command(
                "write",
                "write the figures",
                "printf '%s\\n' "
                + " ".join(f"'{line}'" for line in lines.splitlines())
                + " > figures.txt",
            ),
            command("figures", "read the figures", "cat figures.txt"),
            PlanStep(
                name="sum",
                why="write their sum",
                tool=BASH,
                arguments=lambda seen: {
                    "command": f"echo {sum_numbers(seen, 'figures')} > total.txt"
                },
            ),
            command("total", "read the total", "cat total.txt"),
            PlanStep(
                name="part",
                why="write the share",
                tool=BASH,
                arguments=lambda seen: {
                    "command": f"echo {sum_numbers(seen, 'total') * percent // 100} > share.txt"
                },
            ),
            command("share", "read the share", "cat share.txt"),
            PlanStep(
                name="report",
                why="write the report",
                tool=BASH,
                arguments=lambda seen: {
                    "command": f"printf 'total %s\\nshare %s\\n' "
                    f"{sum_numbers(seen, 'total')}"
                    f" {sum_numbers(seen, 'share')} > report.txt"
                },
            ),
            command("check", "read the report", "cat report.txt"),
            command("list", "list the files", "ls"),
        ),
    )


SHELL_TASKS: Mapping[str, ShellTask] = {
    task.id: task
    for task in (
        _build_figures_task("shell-sum", {"north": 48271, "south": 36915, "east": 70348}, 35),
        _build_figures_task(
            "shell-crew", {"deck": 18264, "engine": 59713, "galley": 23486, "bridge": 41097}, 45
        ),
    )
}
