"""What an agent uses of its machine beside its folder, and what of that another machine has.

Names are read from the agent's own files: modules that its Python files import, variables that its
source reads. Versions come from the recorded interpreter itself, run once with a short program.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from stumble.packs.pack_manifest import PackNeeds
from traces.reachable_paths import is_reachable

INTERPRETER_TIMEOUT = 20.0
MAX_SOURCE_BYTES = 1 << 20
"""Longer files are no source that an agent's author wrote."""
_SOURCE = (".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".go", ".rs", ".sh", "")
_VARIABLE = re.compile(
    rb"""(?:environ(?:\.get)?|getenv|LookupEnv|Getenv|process\.env|ENV(?:\.fetch)?|env::var)"""
    rb"""\s*[\[(.]?\s*["']?([A-Z][A-Z0-9_]{2,63})\b"""
)
_PYTHON = re.compile(r"python[0-9.]*|pypy[0-9.]*")
_LIST_PACKAGES = """
import importlib.metadata as m, json, sys
known = m.packages_distributions()
found = {}
for name in json.load(sys.stdin):
    for each in known.get(name, ()):
        found[each] = m.version(each)
print(json.dumps([".".join(map(str, sys.version_info[:3])), found]))
"""
_VERSIONS = """
import importlib.metadata as m, json, sys
found = {}
for name in json.load(sys.stdin):
    try:
        found[name] = m.version(name)
    except m.PackageNotFoundError:
        pass
print(json.dumps([".".join(map(str, sys.version_info[:3])), found]))
"""

type SourceFile = tuple[str, bytes]
"""A path below the agent's folder, and its content."""


def find_needs(
    command: tuple[str, ...],
    sources: Iterable[SourceFile],
    *,
    variables: Iterable[str] = (),
    left_out: Iterable[str] = (),
) -> PackNeeds:
    """Find what a recorded command needs of this machine beside its folder."""
    modules, names, own = set[str](), set(variables), set[str]()
    for path, data in sources:
        own.add(Path(path).parts[0].removesuffix(".py"))
        if Path(path).suffix not in _SOURCE or len(data) > MAX_SOURCE_BYTES:
            continue
        names |= {found.decode() for found in _VARIABLE.findall(data)}
        if path.endswith(".py"):
            modules |= set(_list_imports(data))
    if command and _PYTHON.fullmatch(Path(command[0]).name) and "-c" in command[1:]:
        modules |= set(_list_imports(command[command.index("-c") + 1 :][0].encode()))
    modules -= own | set(sys.stdlib_module_names)
    version, packages = _ask_python(command, _LIST_PACKAGES, modules) or (None, {})
    return PackNeeds(
        program=command[0] if command else None,
        interpreter=version,
        packages=dict(sorted(packages.items())),
        variables=tuple(sorted(names)),
        left_out=tuple(sorted(left_out)),
    )


def _list_imports(data: bytes) -> Iterator[str]:
    """Yield the top-level names that a Python file imports; none of one that is not Python."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _ask_python(
    command: tuple[str, ...], program: str, names: Iterable[str]
) -> tuple[str, dict[str, str]] | None:
    """Run a program in the command's Python; None if it is another language or does not run."""
    if not command or _PYTHON.fullmatch(Path(command[0]).name) is None:
        return None
    try:
        ran = subprocess.run(
            [command[0], "-P", "-c", program],
            input=json.dumps(sorted(names)),
            capture_output=True,
            text=True,
            timeout=INTERPRETER_TIMEOUT,
            cwd="/",
        )
        version, found = json.loads(ran.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return str(version), {str(name): str(text) for name, text in found.items()}


class NeedFinding(Struct, frozen=True, kw_only=True):
    """One thing that a packed agent needs, and whether this machine has it."""

    what: str
    name: str
    here: bool | None
    """None if it is not known."""
    detail: str = ""


def check_needs(
    needs: PackNeeds, workspace: str | None, environment: Mapping[str, str] | None = None
) -> Iterator[NeedFinding]:
    """Yield each need with whether this machine has it; values of variables are not read."""
    environment = os.environ if environment is None else environment
    if needs.program is not None:
        found = find_program_here((needs.program,))
        same = f" in place of {needs.program}" if found and found != needs.program else ""
        yield NeedFinding(
            what="program",
            name=needs.program,
            here=found is not None or _is_below(needs.program, workspace),
            detail=f"{found}{same}" if found else "",
        )
        if needs.interpreter is not None:
            yield from _check_python(found, needs)
    for name in needs.variables:
        yield NeedFinding(what="variable", name=name, here=name in environment)
    for path in needs.left_out:
        there = workspace is not None and is_reachable(Path(workspace) / path)
        yield NeedFinding(
            what="path", name=path, here=there, detail="not in the pack: a cache, or by its name "
            "or content a secret"
        )  # fmt: skip


def _check_python(program: str | None, needs: PackNeeds) -> Iterator[NeedFinding]:
    asked = _ask_python((program,), _VERSIONS, needs.packages) if program else None
    version, found = asked or (None, {})
    yield NeedFinding(
        what="interpreter",
        name=f"Python {needs.interpreter}",
        here=None if version is None else version.split(".")[:2] == _minor(needs.interpreter),
        detail=f"here {version}" if version else "",
    )
    for name, recorded in needs.packages.items():
        have = found.get(name)
        yield NeedFinding(
            what="package",
            name=f"{name} {recorded}",
            here=None if asked is None else have is not None,
            detail=f"here {have}" if have and have != recorded else "",
        )


def _minor(version: str | None) -> list[str]:
    return (version or "").split(".")[:2]


def _is_below(program: str, workspace: str | None) -> bool:
    return workspace is not None and Path(program).is_relative_to(workspace)


def find_program_here(command: tuple[str, ...]) -> str | None:
    """Return the program of a recorded command on this machine: itself, or one of its name.

    None if there is neither. A Python of another name is one, too: `python3` for `python3.13`.
    """
    program = command[0]
    if shutil.which(program) is not None or not Path(program).is_absolute():
        return program if shutil.which(program) else None
    name = Path(program).name
    others = ("python3", "python") if _PYTHON.fullmatch(name) else ()
    return next((found for each in (name, *others) if (found := shutil.which(each))), None)
