"""`uv tool install .` and `pipx install .`: a program that works far from the checkout."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import bootstrap

ROOT = Path(__file__).resolve().parents[3]
SILENT = ("--quiet", "--python", sys.executable)

pytestmark = pytest.mark.timeout(900)


def folders(tool: str, home: Path) -> Mapping[str, str]:
    """Variables that let a tool install into `home` alone."""
    home.mkdir()
    bare = {"PATH": f"{home / 'bin'}:/usr/bin:/bin", "HOME": str(home), "UV_SYSTEM_CERTS": "true"}
    tools, programs = (
        ("UV_TOOL_DIR", "UV_TOOL_BIN_DIR") if tool == "uv" else ("PIPX_HOME", "PIPX_BIN_DIR")
    )
    # The registry and caches that this machine uses.
    usual = ("UV_", "PIP_", "SSL_", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "REQUESTS_CA_BUNDLE")
    kept = {name: value for name, value in os.environ.items() if name.startswith(usual)}
    cache = {"UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR", str(Path.home() / ".cache" / "uv"))}
    # Else pip compiles every file of every dependency, and a program compiles what it imports.
    cache |= {"PIP_NO_COMPILE": "true"}
    return bare | cache | kept | {tools: str(home / "tools"), programs: str(home / "bin")}


@pytest.mark.many(1)
@pytest.mark.parametrize("tool", ["uv", "pipx"])
def test_an_installed_program_does_the_main_job(tool: str, tmp_path: Path) -> None:
    env, uv = folders(tool, tmp_path / "home"), bootstrap.find_uv()
    install = ("install", *SILENT, str(ROOT))
    pipx = ("run", *SILENT, "pipx") if tool == "pipx" else ()
    subprocess.run((uv, "tool", *pipx, *install), env=env, cwd=tmp_path, check=True)

    def stumble(*words: str) -> str:
        command = [str(tmp_path / "home" / "bin" / "stumble"), *words]
        return subprocess.run(
            command, env=env, cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True
        ).stdout

    assert stumble("--version").startswith("stumble, version ")
    assert "timeout-at-step-34" in stumble("scenarios")
    assert stumble("run", "lost-ack-on-refund").startswith("outcome: ")
    assert (
        stumble("sql", "select count(*) from trajectories where source = 'fork'").split()[-1] == "4"
    )
    stumble("report", "-o", "report.html")
    assert "<svg" in (tmp_path / "report.html").read_text()
