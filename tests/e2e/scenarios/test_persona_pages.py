"""The pages for an agent developer, a platform engineer and a researcher: every command is run."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.recording_daemon import free_port

ROOT = Path(__file__).resolve().parents[3]
SERVE = "stumble practice serve refund-1 &"


def list_page_commands(page: str) -> list[str]:
    """The commands of a page in order, continued lines joined."""
    text = (ROOT / "docs" / page).read_text().replace("\\\n", " ")
    return [line.strip() for line in re.findall(r"^    (\S.*)$", text, re.MULTILINE)]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """The examples in a folder, a shop at free ports, and a user's environment."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI", "STUMBLE", "TOOLS"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = kept | {"HOME": str(tmp_path), "PATH": path}
    words = ("stumble", *SERVE.split()[1:-1])
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=env)
    try:
        assert server.stdout is not None
        shop, model = re.findall(r"port (\d+)", server.stdout.readline())
        urls = {"TOOLS_URL": f"http://127.0.0.1:{shop}"}
        urls["OPENAI_BASE_URL"] = f"http://127.0.0.1:{model}/v1"
        yield tmp_path, env | urls
    finally:
        server.terminate()
        server.communicate(timeout=30)


def run_page(page: str, folder: Path, env: dict[str, str], *other: tuple[str, str]) -> str:
    """Run the commands of a page in one shell; return what they print, with their exit codes."""
    lines = []
    for command in list_page_commands(page):
        for old, new in ((SERVE, "sleep 300 &"), *other):
            command = command.replace(old, new)
        lines += [command] if command.endswith("&") else [command, 'echo "[exit $?]"']
    script = "\n".join([*lines, "kill %1"])
    done = subprocess.run(
        ("bash", "-c", script), cwd=folder, env=env, capture_output=True, text=True, timeout=240
    )
    return done.stdout + done.stderr


@pytest.mark.thorough
def test_an_agent_developer_gets_from_nothing_to_a_number(
    folder: tuple[Path, dict[str, str]],
) -> None:
    said = run_page("agent-developer.md", *folder)
    assert "26 answered from the tape, 0 upstream, 0 diverged" in said  # quickstart
    assert "noticed_wrong: noticed, yet delivered wrong as done" in said
    assert re.findall(r"\[exit (\d+)\]", said) == ["0"] * 7 + ["1"], said
    assert "FAIL                 double actions at most 0: 1 in 1 faulted runs" in said


@pytest.mark.thorough
def test_a_platform_engineer_gets_from_nothing_to_a_number(
    folder: tuple[Path, dict[str, str]],
) -> None:
    ports = [("8080", str(free_port())), ("9464", str(free_port()))]
    said = run_page("platform-engineer.md", *folder, *ports)
    assert re.findall(r"\[exit (\d+)\]", said) == ["0"] * 5 + ["5"], said
    assert 'stumble_exchanges_total{kind="model",result="ok"} 12' in said
    assert "ended; all conversations are on their tapes" in said
    assert "not enough runs" in said


@pytest.mark.thorough
def test_a_researcher_gets_from_nothing_to_a_number(folder: tuple[Path, dict[str, str]]) -> None:
    path = folder[0] / "examples/research/campaign.toml"
    text = path.read_text()
    path.write_text(re.sub(r"tasks = \[.*\]", 'tasks = ["refund-1"]', text))  # one, for time
    env = {k: v for k, v in folder[1].items() if not k.endswith("_URL")}
    said = run_page("researcher.md", folder[0], env)
    assert re.findall(r"\[exit (\d+)\]", said) == ["0", "5", "0", "0", "0"], said
    assert (folder[0] / "report.html").stat().st_size > 10_000
    assert "few_traces" in said
    assert "lost_ack" in said
