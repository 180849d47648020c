"""Programs in other languages and runtimes: rows for the programs in tests/agents.

`make test-clients` alone installs and tries them; Java must be on the machine.
"""

import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.agents import LOCKS, environment, npm_agent
from tests.support.agents.client_table import MODEL, Client


@cache
def go_program() -> Path:
    """The Go program, compiled beside its compiler; static, so that its clock is its own."""
    home = environment("go").parents[1]
    program = home / "http_bash"
    source = LOCKS / "http_bash.go"
    settings = {"CGO_ENABLED": "0", "GOCACHE": str(home / "cache"), "GOTELEMETRY": "off"}
    command = (home / "bin" / "go", "build", "-o", program, source)
    subprocess.run(command, check=True, timeout=600, env=settings)
    return program


def _go(prompt: str) -> tuple[str, ...]:
    return (str(go_program()), MODEL, prompt)


def _java(prompt: str) -> tuple[str, ...]:
    return ("java", str(LOCKS / "HttpBash.java"), MODEL, prompt)


def _deno(prompt: str) -> tuple[str, ...]:
    program = str(npm_agent("node-sdks"))
    return (str(npm_agent("deno")), "run", "--allow-all", program, "openai", MODEL, prompt)


def _bun(prompt: str) -> tuple[str, ...]:
    return (str(npm_agent("bun")), str(npm_agent("node-sdks")), "openai", MODEL, prompt)


LANGUAGES: Mapping[str, Client] = {
    "bun": Client(command=_bun, dialect="openai_chat", streams=True),
    "deno": Client(command=_deno, dialect="openai_chat", streams=True),
    "go": Client(command=_go, dialect="openai_chat"),
    "java": Client(
        command=_java,
        dialect="openai_chat",
        record=("--upstream", "https://api.openai.com/v1"),
    ),
}
