"""Tasks for agents whose only tool is a shell, such as mini-swe-agent.

Wire fact: mini-swe-agent 2 offers one tool `bash` with {"command": ...}, shows the model
{"returncode": ..., "output": ...} as JSON, and ends when a command prints SUBMIT alone; its
version 1 showed `<returncode>` and `<output>` tags. Codex shows lines about the command, then
`Output:` and what it printed. Gemini CLI shows `Output:` and what was printed between two tags,
then lines about the command: its exit code where that is not 0, and its process group; qwen-code
shows the same lines without tags, and the command before them. OpenHands shows the exit code and
more in brackets behind the output.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from scenarios.practice.plan import Seen, Step
from scenarios.practice.schema import Json, Schema, schema
from scenarios.practice.shells import BASH
from scenarios.world import Verdict

SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
RETURNS: Schema = {
    "type": "object",
    "properties": {"returncode": schema(int), "output": schema(str)},
    "required": ["returncode", "output"],
}

_TAGS = re.compile(r"<returncode>(-?\d+)</returncode>\s*<output>\n?(.*?)\n?</output>", re.DOTALL)


_LINES = re.compile(
    r"\A(?:Chunk ID: .*\n)?Wall time: .*\nProcess exited with code (-?\d+)\n(?:.*\n)*?Output:\n"
)

_BETWEEN = re.compile(
    r"\A(?:<untrusted_context>\n|Command: .*?\nDirectory: .*\n)Output: (.*?)\n"
    r"(?:Error: .*\n)?(?:Exit Code: (-?\d+)\n)?(?:[A-Z][\w ]+: .*\n?)*(?:</untrusted_context>)?\Z",
    re.DOTALL,
)

_ENDED = re.compile(
    r"\A(.*?)\n\[The command completed with exit code (-?\d+)\.\]\n(?:\[.*\]\n?)*\Z", re.DOTALL
)


def parse(text: str) -> dict[str, Json] | None:
    """Return code and output of a command, from what the agent shows of it; None where cut."""
    if found := _TAGS.search(text):
        return {"returncode": int(found[1]), "output": found[2]}
    if found := _LINES.match(text):
        return {"returncode": int(found[1]), "output": text[found.end() :]}
    if found := _BETWEEN.match(text):
        output = "" if found[1] == "(empty)" else found[1]
        return {"returncode": int(found[2] or 0), "output": output}
    if found := _ENDED.match(text):
        return {"returncode": int(found[2]), "output": found[1]}
    if not text.startswith(("{", "<returncode>")):
        return {"returncode": 0, "output": text}
    try:
        shown = json.loads(text)
    except ValueError:
        return None
    return {**shown} if isinstance(shown, dict) else None


def failure(arguments: Mapping[str, Json], whole: Mapping[str, Json]) -> str | None:
    """Why the result of a command is of no use; None where it is."""
    output = str(whole["output"]).strip()
    if whole["returncode"] != 0:
        return f"return code {whole['returncode']}: {output[-80:]}"
    if str(arguments.get("command")).startswith("cat ") and not output:
        return f"{arguments['command']} printed nothing"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellTask:
    """A task in a folder: like a Task, but its end state is files."""

    id: str
    prompt: str
    files: Mapping[str, str]
    """What each file must hold in the end, give or take spaces at the end of lines."""
    plan: tuple[Step, ...]
    start: Mapping[str, str] = field(default_factory=dict)
    """The files that must be there before the work begins."""

    def final(self, seen: Seen) -> str:
        """What to tell the user."""
        return f"the total is {sum_of(seen, 'figures')} and the report holds it."


def lay_out(folder: Path, task: ShellTask) -> None:
    """Put the files there that the task begins with."""
    for name, text in task.start.items():
        (folder / name).write_text(text, "utf-8")


def verify(folder: Path, task: ShellTask) -> Verdict:
    """Whether the folder holds the files the task demands; other files do not matter."""
    differences = tuple(_differences(folder, task))
    return Verdict(passed=not differences, detail="; ".join(differences))


def _differences(folder: Path, task: ShellTask) -> Iterator[str]:
    for name, wanted in task.files.items():
        try:
            found = (folder / name).read_text("utf-8", "replace")
        except FileNotFoundError:
            yield f"{name} is missing"
        else:
            if found.split() != wanted.split():
                yield f"{name} holds {found!r}, not {wanted!r}"


def sum_of(seen: Seen, step: str) -> int:
    """The sum of the whole numbers that a command printed, one at the end of each line."""
    lines = re.findall(r"(-?\d+)\s*$", seen.text(step, "output"), re.MULTILINE)
    return sum(map(int, lines))


def _task(id: str, figures: Mapping[str, int], percent: int) -> ShellTask:
    listed = "".join(f"{name} {value}\n" for name, value in figures.items())
    total = sum(figures.values())
    share = total * percent // 100
    report = f"total {total}\nshare {share}\n"
    prompt = f"""\
Work in the current folder, with these figures: {", ".join(listed.splitlines())}.
1. Write them into figures.txt, one per line, name and number.
2. Read the file and write the sum of its numbers into total.txt.
3. Write {percent} % of the total, rounded down, into share.txt.
4. Write report.txt with the two lines "total <total>" and "share <share>", read from the files.
task: {id}
"""

    def command(name: str, why: str, text: str) -> Step:
        return Step(name=name, why=why, tool=BASH, arguments=lambda _: {"command": text})

    return ShellTask(
        id=id,
        prompt=prompt,
        files={
            "figures.txt": listed,
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
                + " ".join(f"'{line}'" for line in listed.splitlines())
                + " > figures.txt",
            ),
            command("figures", "read the figures", "cat figures.txt"),
            Step(
                name="sum",
                why="write their sum",
                tool=BASH,
                arguments=lambda seen: {"command": f"echo {sum_of(seen, 'figures')} > total.txt"},
            ),
            command("total", "read the total", "cat total.txt"),
            Step(
                name="part",
                why="write the share",
                tool=BASH,
                arguments=lambda seen: {
                    "command": f"echo {sum_of(seen, 'total') * percent // 100} > share.txt"
                },
            ),
            command("share", "read the share", "cat share.txt"),
            Step(
                name="report",
                why="write the report",
                tool=BASH,
                arguments=lambda seen: {
                    "command": f"printf 'total %s\\nshare %s\\n' {sum_of(seen, 'total')}"
                    f" {sum_of(seen, 'share')} > report.txt"
                },
            ),
            command("check", "read the report", "cat report.txt"),
            command("list", "list the files", "ls"),
        ),
    )


SHELL_TASKS: Mapping[str, ShellTask] = {
    task.id: task
    for task in (
        _task("shell-sum", {"north": 48271, "south": 36915, "east": 70348}, 35),
        _task("shell-crew", {"deck": 18264, "engine": 59713, "galley": 23486, "bridge": 41097}, 45),
    )
}
