"""The floors of `stumble/`: a folder imports from the floors below it, and from no other."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

FLOORS = (
    {"control_characters", "errors", "notices", "terminal_progress"},
    {"llm", "user_data", "verdicts"},
    {"store"},
    {"daemon", "imports", "mcp", "packs", "spark"},
    {"collect", "runs", "team"},
    {"campaigns", "doctor", "drift", "selftest"},
    {"demo", "gate", "project_setup", "quickstart", "report"},
    {"atlas", "experiments", "pipeline", "ui"},
    {"cli"},
    {"__main__"},
)
"""The folders and files of `stumble/`, from the lowest floor to the highest."""

LEVELS = {name: level for level, floor in enumerate(FLOORS) for name in floor}


def list_imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and dotted name of each import in a file, also of those inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, each.name) for each in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield from ((node.lineno, f"{module}.{each.name}") for each in names)
            case ast.ImportFrom():
                yield node.lineno, f"{path}: a relative import"


def find_arrows(package: Path) -> Iterator[tuple[str, str, str]]:
    """Importing place, its folder and the imported folder, for imports within a package."""
    for path in sorted(package.rglob("*.py")):
        relative = path.relative_to(package.parent)
        folder = relative.parts[1].removesuffix(".py")
        for line, name in list_imports(path):
            top, _, rest = name.partition(".")
            other = rest.partition(".")[0]
            if top == package.name and other != folder:
                yield f"{relative}:{line}", folder, other


def find_upward_arrows(package: Path, levels: Mapping[str, int]) -> list[str]:
    return [
        f"{where}: {folder} imports {other}"
        for where, folder, other in find_arrows(package)
        if levels[other] >= levels[folder]
    ]


def read_import_graph(package: Path) -> Mapping[str, Set[str]]:
    graph = defaultdict[str, set[str]](set)
    for _, folder, other in find_arrows(package):
        graph[folder].add(other)
    return graph


def test_no_folder_imports_from_its_own_floor_or_above() -> None:
    assert find_upward_arrows(ROOT / "stumble", LEVELS) == []


def test_folders_form_no_cycle() -> None:
    TopologicalSorter(read_import_graph(ROOT / "stumble")).prepare()


def test_each_folder_stands_on_one_floor() -> None:
    parts = {
        path.relative_to(ROOT / "stumble").parts[0].removesuffix(".py")
        for path in (ROOT / "stumble").rglob("*.py")
    }
    assert parts - {"__init__"} == set(LEVELS)
    assert len(LEVELS) == sum(map(len, FLOORS))


def test_only_the_command_line_imports_click() -> None:
    importers = {
        path.relative_to(ROOT).parts[1]
        for path in (ROOT / "stumble").rglob("*.py")
        for _, name in list_imports(path)
        if name.partition(".")[0] == "click"
    }
    assert importers == {"cli"}


UPWARD_IMPORTS = [
    "from stumble.cli.options import budget_option",
    "from stumble import cli",
    "import stumble.cli.options",
    "def judge():\n    from stumble.cli import options",
    "if TYPE_CHECKING:\n    from stumble.cli.options import budget_option",
]


@pytest.mark.parametrize("text", UPWARD_IMPORTS)
def test_an_upward_import_is_found_wherever_it_stands(tmp_path: Path, text: str) -> None:
    store = tmp_path / "stumble" / "store"
    store.mkdir(parents=True)
    (store / "index.py").write_text(f"import os\n{text}\n")
    [found] = find_upward_arrows(tmp_path / "stumble", LEVELS)
    assert found.startswith("stumble/store/index.py:")
    assert found.endswith("store imports cli")


def test_a_cycle_is_found(tmp_path: Path) -> None:
    for name, other in (("runs", "store"), ("store", "runs")):
        folder = tmp_path / "stumble" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(f"from stumble.{other} import anything\n")
    with pytest.raises(CycleError):
        TopologicalSorter(read_import_graph(tmp_path / "stumble")).prepare()
