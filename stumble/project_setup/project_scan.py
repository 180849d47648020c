"""Find out what a project is: its language, its program, its provider's variables, its tests.

Nothing is executed. A program is found by what it does, and not by its name: it can be started, and
it or a module of the project that it imports names a variable of a model provider
(`..._API_KEY`, `..._BASE_URL`).
"""

import ast
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

type Language = Literal["python", "node", "go", "rust", "unknown"]

MANIFESTS: Mapping[str, Language] = {
    "pyproject.toml": "python", "requirements.txt": "python", "setup.py": "python",
    "package.json": "node", "go.mod": "go", "Cargo.toml": "rust",
}  # fmt: skip
SUFFIXES: Mapping[str, Language] = {
    ".py": "python", ".js": "node", ".mjs": "node", ".ts": "node", ".go": "go", ".rs": "rust",
}  # fmt: skip
PROVIDER_VARIABLE = re.compile(rb"\b[A-Z][A-Z0-9_]*_(?:API_KEY|BASE_URL|API_BASE)\b")
STARTABLE = {
    "python": re.compile(rb"^if __name__\s*==", re.MULTILINE),
    "go": re.compile(rb"^package main\b", re.MULTILINE),
}
IGNORED_FOLDERS = frozenset(
    ("node_modules", "__pycache__", "venv", "dist", "build", "target", "vendor", "site-packages")
)
MAX_FILES = 2_000
MAX_FILE_BYTES = 512 * 1024


class EntryPoint(Struct, frozen=True, kw_only=True):
    """A command that starts something of the project."""

    command: tuple[str, ...]
    why: str
    is_agent: bool
    """Whether it mentions a provider."""


class ProjectScan(Struct, frozen=True, kw_only=True):
    """What was found; entry points with the most likely agent first."""

    folder: Path
    language: Language
    entry_points: tuple[EntryPoint, ...]
    variables: tuple[str, ...]
    """Variables of model providers that its files mention."""
    test_command: str | None
    has_more: bool = False
    """Whether files were left unread."""


def scan_project(folder: Path) -> ProjectScan:
    """Read the files of a project and return what it is."""
    files = [path for _, path in zip(range(MAX_FILES + 1), _walk_files(folder), strict=False)]
    texts = {path: _read_start(path) for path in files[:MAX_FILES]}
    variables = sorted(
        {match.decode() for text in texts.values() for match in PROVIDER_VARIABLE.findall(text)}
    )
    entries = (*_find_declared(folder, texts), *_find_programs(folder, texts))
    ranked = sorted(entries, key=lambda each: (not each.is_agent, len(each.command[-1])))
    return ProjectScan(
        folder=folder,
        language=_find_language(folder, texts),
        entry_points=tuple({each.command: each for each in reversed(ranked)}.values())[::-1],
        variables=tuple(variables),
        test_command=_find_test_command(folder, texts),
        has_more=len(files) > MAX_FILES,
    )


def _walk_files(folder: Path) -> Iterator[Path]:
    """Yield source files and manifests, those of the folder itself first."""
    folders = [folder]
    while folders:
        here = folders.pop(0)
        try:
            entries = sorted(here.iterdir())
        except OSError:
            continue
        for entry in entries:
            if entry.is_symlink():
                continue
            if entry.is_dir():
                if entry.name not in IGNORED_FOLDERS and not entry.name.startswith("."):
                    folders.append(entry)
            elif entry.suffix in SUFFIXES or entry.name in MANIFESTS:
                yield entry


def _read_start(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES)
    except OSError:
        return b""


def choose_entry_point(scan: ProjectScan) -> EntryPoint | None:
    """Return the most likely agent; of programs without a provider's name, only the single one."""
    if scan.entry_points and (scan.entry_points[0].is_agent or len(scan.entry_points) == 1):
        return scan.entry_points[0]
    return None


def _find_language(folder: Path, texts: Mapping[Path, bytes]) -> Language:
    for name, language in MANIFESTS.items():
        if (folder / name).is_file():
            return language
    counts: dict[Language, int] = {}
    for path in texts:
        if found := SUFFIXES.get(path.suffix):
            counts[found] = counts.get(found, 0) + 1
    return max(counts, key=lambda each: counts[each]) if counts else "unknown"


def _find_declared(folder: Path, texts: Mapping[Path, bytes]) -> Iterator[EntryPoint]:
    """Yield the programs that the project's own manifests declare."""
    mentions = any(_mentions_provider(text) for text in texts.values())
    project = _load_toml(folder / "pyproject.toml").get("project")
    scripts = project.get("scripts") if isinstance(project, dict) else None
    for name in scripts if isinstance(scripts, dict) else ():
        yield EntryPoint(command=(str(name),), why="pyproject.toml", is_agent=mentions)
    try:
        package = json.loads((folder / "package.json").read_bytes())
    except (OSError, ValueError):
        return
    scripts = package.get("scripts") if isinstance(package, dict) else None
    if isinstance(scripts, dict) and "start" in scripts:
        command = ("npm", "run", "--silent", "start")
        yield EntryPoint(command=command, why="package.json", is_agent=mentions)


def _find_programs(folder: Path, texts: Mapping[Path, bytes]) -> Iterator[EntryPoint]:
    """Yield files that can be started, outside of tests."""
    for path, text in texts.items():
        name = path.relative_to(folder)
        if any(part.startswith("test") or part == "conftest.py" for part in name.parts):
            continue
        language = SUFFIXES.get(path.suffix)
        if language == "python" and STARTABLE["python"].search(text):
            yield EntryPoint(
                command=("python3", str(name)),
                why="starts a program",
                is_agent=_uses_provider(path, text, texts),
            )
        elif language == "node" and text.startswith(b"#!"):
            yield EntryPoint(
                command=("node", str(name)),
                why="starts a program",
                is_agent=_mentions_provider(text),
            )
        elif language == "go" and STARTABLE["go"].search(text):
            where = f"./{name.parent}" if len(name.parts) > 1 else "."
            yield EntryPoint(
                command=("go", "run", where), why="package main", is_agent=_mentions_provider(text)
            )


def _mentions_provider(text: bytes) -> bool:
    return PROVIDER_VARIABLE.search(text) is not None


def _uses_provider(path: Path, text: bytes, texts: Mapping[Path, bytes]) -> bool:
    """Return whether a Python file or a module of the project that it imports names a provider."""
    if _mentions_provider(text):
        return True
    imported = set(_list_imports(text))
    return any(
        other.stem in imported and _mentions_provider(found)
        for other, found in texts.items()
        if other != path
    )


def _list_imports(text: bytes) -> Sequence[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ()
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name.rpartition(".")[2] for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [(node.module or "").rpartition(".")[2], *(each.name for each in node.names)]
    return names


def _find_test_command(folder: Path, texts: Mapping[Path, bytes]) -> str | None:
    names = [path.relative_to(folder) for path in texts]
    if any(path.name.startswith("test_") and path.suffix == ".py" for path in names):
        return "pytest"
    if any(path.name.endswith("_test.go") for path in names):
        return "go test ./..."
    if any(re.search(r"\.(?:test|spec)\.(?:m?js|ts)$", path.name) for path in names):
        return "npm test"
    return None


def _load_toml(path: Path) -> Mapping[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
