"""The layers: who may import whom, what is shipped, and what is never written."""

import ast
import functools
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MIDDLE = ("recorder", "replay", "faults", "scenarios")
PACKAGES = {"traces", "sandbox", "stumble", *MIDDLE}
BASE_DEPENDENCIES = {
    "brotli",
    "duckdb",
    "hyperscan",
    "msgpack",
    "msgspec",
    "orjson",
    "pyarrow",
    "zstandard",
}
"""What the base layer may lean on; brotli is one of the encodings that bodies come in."""


@functools.cache
def imports(package: str) -> tuple[tuple[str, str], ...]:
    """Every import in a package, also inside functions, as file:line and top-level name."""
    return tuple(
        (f"{path.relative_to(ROOT)}:{line}", name)
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, name in file_imports(path, package)
    )


def file_imports(path: Path, package: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, name.name.partition(".")[0]) for name in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield node.lineno, module.partition(".")[0]
            case ast.ImportFrom():
                yield node.lineno, package


@pytest.mark.gate
@pytest.mark.parametrize("package", MIDDLE)
def test_a_package_imports_the_base_layer_and_itself(package: str) -> None:
    others = PACKAGES - {"traces", "sandbox", package}
    assert [(where, name) for where, name in imports(package) if name in others] == []


@pytest.mark.gate
def test_the_base_layer_needs_the_standard_library_and_a_few_others() -> None:
    allowed = sys.stdlib_module_names | BASE_DEPENDENCIES | {"traces"}
    assert [(where, name) for where, name in imports("traces") if name not in allowed] == []
    others = PACKAGES - {"sandbox"}
    assert [(where, name) for where, name in imports("sandbox") if name in others] == []


def test_imports_are_really_read() -> None:
    assert ("traces/taps.py", "traces") in {
        (where.partition(":")[0], name) for where, name in imports("traces")
    }


@pytest.mark.gate
def test_the_wheel_has_the_packages_with_their_sql_and_data_alone(
    tmp_path: Path,
) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=60)
    [wheel] = tmp_path.glob("*.whl")
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert {name.partition("/")[0] for name in held} == PACKAGES
    sql = {str(path.relative_to(ROOT)) for path in (ROOT / "traces").rglob("*.sql")}
    assert sql <= held
    folders = [
        ROOT / "scenarios" / "pipeline" / "compiler" / part
        for part in ("cases", "frozen", "runtime")
    ]
    data = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert {str(path.relative_to(ROOT)) for path in data} <= held
    assert "scenarios/pipeline/compiler/language.md" in held


@pytest.mark.gate
def test_what_the_packages_import_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    names = [*project["dependencies"], *(name for extra in extras for name in extra)]
    declared = {re.split(r"[<>=\[;]", name)[0] for name in names}
    brought = {module for name in declared for module in modules(name)}
    missing = {
        f"{where} {name}"
        for package in PACKAGES
        for where, name in imports(package)
        if name not in sys.stdlib_module_names | PACKAGES | brought
    }
    assert missing == set()


NOT_INSTALLED = {"py4j", "pyspark", "ray", "xllamacpp"}
"""Large extras, which only tests with an environment of their own use."""


def modules(name: str) -> set[str]:
    """The top-level names that an installed distribution can be imported by."""
    same = name.replace("-", "_")
    if same in NOT_INSTALLED or find_spec(
        same
    ):  # else its files have to be read, of which some have twenty thousand
        return {same}
    parts = {file.parts[0] for file in distribution(name).files or ()}
    return {part.partition(".")[0] for part in parts}


# Written in pieces, so that this file does not hold what it forbids.
# Recordings that are shipped were made below the home of a user demo.
FORBIDDEN = {
    "a path of one machine": r"(?<![\w.~-])/(?:ro"
    + r"ot|wo"
    + r"rk|ho"
    + r"me/(?!demo/)\w+)\b(?!-)",
    "a registry host": r"py"
    + r"pi\.(?:org|io)|python"
    + r"hosted\.|npm"
    + r"js\.|debian"
    + r"\.org",
}


@pytest.mark.gate
def test_no_file_names_a_machine_path_or_a_registry() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    assert paths
    found = [
        f"{path.relative_to(ROOT)}: {what}: {match[0].decode()}"
        for path in paths
        if path.is_file()
        for what, pattern in FORBIDDEN.items()
        if (match := re.search(pattern.encode(), path.read_bytes()))
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    ["cd /wo" + "rk/main", 'Path("/ro' + 'ot/.cache")', "https://py" + "pi.org/simple"],
)
def test_what_is_forbidden_would_be_found(text: str) -> None:
    assert any(re.search(pattern, text) for pattern in FORBIDDEN.values())


@pytest.mark.parametrize("text", ["GET /workers", "/usr/local/work", "see ~/work", "a/root/b"])
def test_what_only_looks_alike_is_not(text: str) -> None:
    assert not any(re.search(pattern, text) for pattern in FORBIDDEN.values())


def undocumented(path: Path) -> Iterator[str]:
    """What of a file says nothing of itself: the module, and its public functions."""
    tree = ast.parse(path.read_text())
    if not ast.get_docstring(tree):
        yield f"{path.relative_to(ROOT)}"
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if not node.name.startswith("_") and not ast.get_docstring(node):
            yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"


@pytest.mark.gate
@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_what_is_public_says_what_it_is(package: str) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
    assert [what for path in files for what in undocumented(path)] == []
