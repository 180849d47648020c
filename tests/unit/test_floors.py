"""The floors of `stumble/`: a folder imports from the floors below it, and from no other."""

from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.support.import_floors import (
    FLOORS,
    LEVELS,
    PAGE,
    ROOT,
    draw_wall,
    find_upward_arrows,
    insert_drawings,
    list_imports,
    read_folder_graph,
    reduce_arrows,
    render_drawings,
)


def test_no_folder_imports_from_its_own_floor_or_above() -> None:
    assert find_upward_arrows(ROOT / "stumble") == []


def test_folders_form_no_cycle() -> None:
    TopologicalSorter(read_folder_graph(ROOT / "stumble")).prepare()


def test_each_folder_stands_on_one_floor() -> None:
    parts = {
        path.relative_to(ROOT / "stumble").parts[0].removesuffix(".py")
        for path in (ROOT / "stumble").rglob("*.py")
    }
    assert parts - {"__init__"} == set(LEVELS)
    assert len(LEVELS) == sum(map(len, FLOORS))


def test_only_the_command_line_and_extensions_import_click() -> None:
    importers = {
        path.relative_to(ROOT).parts[1]
        for path in (ROOT / "stumble").rglob("*.py")
        for _, name in list_imports(path)
        if name.partition(".")[0] == "click"
    }
    assert importers == {"cli", "atlas"}


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
    [found] = find_upward_arrows(tmp_path / "stumble")
    assert found.startswith("stumble/store/index.py:")
    assert found.endswith("store imports cli")


def test_a_cycle_is_found(tmp_path: Path) -> None:
    for name, other in (("runs", "store"), ("store", "runs")):
        folder = tmp_path / "stumble" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(f"from stumble.{other} import anything\n")
    with pytest.raises(CycleError):
        TopologicalSorter(read_folder_graph(tmp_path / "stumble")).prepare()


def test_the_drawings_of_the_page_are_of_these_imports() -> None:
    """`python -m tests.support.import_floors` draws them again."""
    page = PAGE.read_text()
    assert insert_drawings(page, render_drawings()) == page


def test_an_arrow_that_follows_from_others_is_not_drawn() -> None:
    graph = {"cli": {"runs", "store"}, "runs": {"store"}, "store": set[str]()}
    assert reduce_arrows(graph, "cli") == ["runs"]


def test_a_wall_has_the_highest_floor_at_its_top() -> None:
    assert draw_wall([("traces", "sandbox"), ("stumble",)]) == [
        "┌──────────────────┐",
        "│ stumble          │",
        "├────────┬─────────┤",
        "│ traces │ sandbox │",
        "└────────┴─────────┘",
    ]


def test_a_page_without_its_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="no drawing 'house'"):
        insert_drawings("# Architecture\n", {"house": ""})
