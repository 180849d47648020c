"""What of a command would not be recorded, as far as its program and its variables tell."""

import mmap
import re
import shutil
import struct
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

type Said = tuple[bool | None, str]
"""False for what is missed, None for what may be, with the words for it."""

CONTAINERS = frozenset(("docker", "docker-compose", "podman", "nerdctl", "apptainer"))
SANDBOXES: Mapping[str, str] = {
    "GEMINI_SANDBOX": "docker|podman|true|1",  # Gemini CLI and, by its old name, qwen-code
    "QWEN_SANDBOX": "docker|podman|true|1",
    "RUNTIME": "docker|remote",  # OpenHands
}
"""Variables by which an agent moves its tools, or itself, into a container."""
ELSEWHERE: Mapping[str, str] = {
    "CLAUDE_CODE_USE_BEDROCK": "Bedrock's requests are recorded, but not understood as model calls",
    "CLAUDE_CODE_USE_VERTEX": "Vertex's requests are recorded, but not understood as model calls",
}
NODE = (18, 19)
"""The first Node that takes `--import` in NODE_OPTIONS; older ones refuse to start with it."""
GO = b"\xff Go buildinf:"
_SCRIPT = (".js", ".mjs", ".cjs")
_PATIENCE = 10.0


def programs(command: tuple[str, ...], env: Mapping[str, str]) -> Iterator[Said]:
    """What the command's own words and its program say."""
    words = {Path(word).name for text in command for word in re.split(r"[\s;&|]+", text)}
    for name in sorted(words & CONTAINERS):
        yield False, f"{name}: what runs in a container has neither our proxy nor our certificate"
    found = shutil.which(command[0], path=env.get("PATH"))
    if found is None:
        return
    program = Path(found).resolve()
    if _is_static_go(program):
        yield (
            None,
            f"{program.name} is a static Go program: one that brings its own trust is missed",
        )
    if _is_node(command, program):
        yield from _node(env)


def settings(env: Mapping[str, str]) -> Iterator[Said]:
    """What the variables say."""
    for name, value in sorted(env.items()):
        if name in ELSEWHERE and value not in ("", "0"):
            yield None, f"{name}: {ELSEWHERE[name]}"
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
    """An ELF file without an interpreter that says it was built by Go."""
    if not program.is_file() or program.stat().st_size < 64:
        return False
    with program.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:5] != b"\x7fELF\x02" or _interpreted(data):
            return False
        return data.find(GO) >= 0


def _interpreted(data: mmap.mmap) -> bool:
    """Whether a 64-bit ELF file has a program header PT_INTERP (elf(5))."""
    (start,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    kinds = (struct.unpack_from("<I", data, start + size * nth)[0] for nth in range(count))
    return 3 in kinds


def _is_node(command: tuple[str, ...], program: Path) -> bool:
    if program.name in ("node", "npx", "npm") or program.suffix in _SCRIPT:
        return True
    with program.open("rb") as file:
        return re.match(rb"#!.*\bnode\b", file.readline(200)) is not None


def _node(env: Mapping[str, str]) -> Iterator[Said]:
    node = shutil.which("node", path=env.get("PATH"))
    if node is None:
        return
    asked = subprocess.run(
        [node, "--version"], capture_output=True, text=True, timeout=_PATIENCE, env={}
    )
    found = re.match(r"v(\d+)\.(\d+)", asked.stdout)
    if found is not None and (int(found[1]), int(found[2])) < NODE:
        wanted = ".".join(map(str, NODE))
        yield False, f"Node {asked.stdout.strip()} is too old for our hook, which needs {wanted}"
