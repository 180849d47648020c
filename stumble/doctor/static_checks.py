"""Static checks of an agent's program and variables for traffic that would not be recorded."""

import mmap
import re
import shutil
import struct
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

type StaticFinding = tuple[bool | None, str]
"""False for missed traffic, None for possibly missed, True for recorded; with a description."""

CONTAINERS = frozenset(("docker", "docker-compose", "podman", "nerdctl", "apptainer"))
SANDBOXES: Mapping[str, str] = {
    "GEMINI_SANDBOX": "docker|podman|true|1",  # Gemini CLI and, by its old name, qwen-code
    "QWEN_SANDBOX": "docker|podman|true|1",
    "RUNTIME": "docker|remote",  # OpenHands
}
"""Variables that make an agent run its tools, or itself, in a container, with a value pattern."""
UNREAD_PROVIDERS: Mapping[str, str] = {
    "CLAUDE_CODE_USE_BEDROCK": "Bedrock's requests are recorded, but not understood as model calls",
    "CLAUDE_CODE_USE_VERTEX": "Vertex's requests are recorded, but not understood as model calls",
}
MIN_NODE_VERSION = (18, 19)
"""The first Node version with `--import` in NODE_OPTIONS; older ones refuse to start with it."""
GO_BUILD_MAGIC = b"\xff Go buildinf:"
_SCRIPT = (".js", ".mjs", ".cjs")
_PATIENCE = 10.0


def check_agent_program(
    command: tuple[str, ...], env: Mapping[str, str]
) -> Iterator[StaticFinding]:
    """Check the words of the command and its program."""
    words = {Path(word).name for text in command for word in re.split(r"[\s;&|]+", text)}
    for name in sorted(words & CONTAINERS):
        yield False, f"{name}: what runs in a container has neither our proxy nor our certificate"
    executable = shutil.which(command[0], path=env.get("PATH"))
    if executable is None:
        return
    program = Path(executable).resolve()
    if _is_static_go(program):
        yield (
            None,
            f"{program.name} is a static Go program: one that brings its own trust is missed",
        )
    if _is_node_program(command, program):
        yield from _check_node_version(env)


def check_agent_variables(env: Mapping[str, str]) -> Iterator[StaticFinding]:
    """Check the variables."""
    for name, value in sorted(env.items()):
        if name in UNREAD_PROVIDERS and value not in ("", "0"):
            yield None, f"{name}: {UNREAD_PROVIDERS[name]}"
        elif name in SANDBOXES and re.fullmatch(SANDBOXES[name], value.lower()):
            yield False, f"{name}={value}: tools in a container have neither proxy nor certificate"
        elif (
            name.endswith(("_BASE_URL", "_API_BASE", "_UNIX_SOCKET"))
            and "unix" in name.lower() + value
        ):
            yield False, f"{name}: what goes over a Unix socket is not seen"
        elif name.lower() == "no_proxy" and value:
            yield True, f"{name} is empty for the run, so that these are recorded too: {value}"


def _is_static_go(program: Path) -> bool:
    """Whether a file is a 64-bit ELF file with Go build info and without an interpreter."""
    if not program.is_file() or program.stat().st_size < 64:
        return False
    with program.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:5] != b"\x7fELF\x02" or _has_elf_interpreter(data):
            return False
        return data.find(GO_BUILD_MAGIC) >= 0


def _has_elf_interpreter(data: mmap.mmap) -> bool:
    """Whether a 64-bit ELF file has a program header PT_INTERP (elf(5))."""
    (start,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    kinds = (struct.unpack_from("<I", data, start + size * nth)[0] for nth in range(count))
    return 3 in kinds


def _is_node_program(command: tuple[str, ...], program: Path) -> bool:
    if program.name in ("node", "npx", "npm") or program.suffix in _SCRIPT:
        return True
    with program.open("rb") as file:
        return re.match(rb"#!.*\bnode\b", file.readline(200)) is not None


def _check_node_version(env: Mapping[str, str]) -> Iterator[StaticFinding]:
    node = shutil.which("node", path=env.get("PATH"))
    if node is None:
        return
    version_output = subprocess.run(
        [node, "--version"], capture_output=True, text=True, timeout=_PATIENCE, env={}
    )
    version = re.match(r"v(\d+)\.(\d+)", version_output.stdout)
    if version is not None and (int(version[1]), int(version[2])) < MIN_NODE_VERSION:
        required = ".".join(map(str, MIN_NODE_VERSION))
        yield (
            False,
            f"Node {version_output.stdout.strip()} is too old for our hook, which needs {required}",
        )
