"""The README's first screen is a real session with its real output."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUN_ID = re.compile(r"\d{8}T\d{6}-[0-9a-f]{8}")


def session(number: int = 1) -> list[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines that it printed."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    commands: list[tuple[str, list[str]]] = []
    for line in blocks[number].replace("\\\n", "").splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        else:
            commands[-1][1].append(line)
    return commands


def without_isolation(lines: list[str]) -> list[str]:
    """The lines but those on where the agent worked and whether it was isolated."""
    without = ("isolated: ", "not isolated: ", "workspace: ", "outside: ")
    return [line for line in lines if not line.startswith(without)]


def test_the_first_screen_of_the_readme_is_true(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI", "TOOLS", "STUMBLE"))}
    env |= {"PATH": path, "HOME": str(tmp_path), "STUMBLE_STORE": str(tmp_path / ".stumble")}
    served = []
    try:
        for command, printed in session():
            where: dict[str, Any] = {"cwd": tmp_path, "env": env, "text": True}
            if command.endswith(" &"):
                serving = subprocess.Popen(
                    command.removesuffix(" &").split(), stdout=subprocess.PIPE, **where
                )
                served.append(serving)
                assert serving.stdout is not None
                said = [serving.stdout.readline().rstrip()]
                # Other ports are used if somebody has these.
                assert re.sub(r"port \d+", "port N", said[0]) == re.sub(
                    r"port \d+", "port N", printed[0]
                )
                continue
            done = subprocess.run(
                command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                timeout=100, **where,
            )  # fmt: skip
            said = [RUN_ID.sub("RUN", line.rstrip()) for line in done.stdout.splitlines()]
            printed = [RUN_ID.sub("RUN", line) for line in printed]
            if os.geteuid() != 0:  # whom not every machine lets isolate an agent
                said, printed = without_isolation(said), without_isolation(printed)
            assert said == printed, command
    finally:
        for serving in served:
            serving.kill()
            serving.communicate(timeout=10)


@pytest.mark.thorough
@pytest.mark.timeout(500)
def test_the_check_of_the_readme_finds_what_it_shows(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI", "TOOLS", "STUMBLE"))}
    env |= {"PATH": path, "HOME": str(tmp_path), "STUMBLE_STORE": str(tmp_path / ".stumble")}
    (serve, _), (check, shown) = session(0)
    where: dict[str, Any] = {"cwd": tmp_path, "env": env, "text": True, "stdout": subprocess.PIPE}
    serving = subprocess.Popen(serve.removesuffix(" &").split(), **where)
    try:
        assert serving.stdout is not None
        serving.stdout.readline()
        done = subprocess.run(check, shell=True, timeout=400, check=False, **where)
    finally:
        serving.kill()
        serving.communicate(timeout=10)
    sentences = [line for line in shown if line.startswith("  when ")]
    assert len(sentences) == 5
    # Three minutes are fewer faults on a busy machine, and the worst come first.
    assert sentences[0] in done.stdout.splitlines(), done.stdout
    assert done.returncode == 1


def test_the_session_shows_the_main_job() -> None:
    verbs = [command.split()[1] for command, _ in session()]
    assert verbs == ["practice", "record", "replay", "fork", "sql"]


def test_every_command_of_the_readme_exists_with_its_options() -> None:
    from stumble.cli.command_table import COMMANDS, find_command, load_command

    text = (ROOT / "README.md").read_text()
    for verb in re.findall(r"^    stumble (\w+)", text, re.MULTILINE):
        assert find_command(verb) is not None, verb
    options = {
        option
        for name in COMMANDS
        for parameter in load_command(name).params
        for option in parameter.opts
    }
    for line in re.findall(r"^ +(?:stumble|--).*$", text, re.MULTILINE):
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", line):
            assert option in options, line
