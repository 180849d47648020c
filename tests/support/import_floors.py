"""Imports between the packages of the house, and between the folders of `stumble/`.

python -m tests.support.import_floors       draws both into docs/architecture.md
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "architecture.md"
PACKAGES = ("traces", "sandbox", "recorder", "replay", "faults", "scenarios", "stumble")

FLOORS = (
    ("control_characters", "errors", "notices", "processors", "terminal_progress"),
    ("extensions", "llm", "user_data", "verdicts"),
    ("store",),
    ("daemon", "imports", "mcp", "packs"),
    ("collect", "runs", "team"),
    ("campaigns", "doctor", "drift", "selftest"),
    ("demo", "gate", "project_setup", "quickstart", "report"),
    ("check", "experiments", "pipeline"),
    ("ui",),
    ("cli",),
    ("atlas", "spark"),
    ("__main__",),
)
"""The folders and files of `stumble/`, from the lowest floor to the highest.

Extensions stand above the command line, which loads them by their entry points.
"""

LEVELS = {name: level for level, floor in enumerate(FLOORS) for name in floor}

type ImportGraph = Mapping[str, Set[str]]
"""Name -> the names that it imports."""


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


def find_upward_arrows(package: Path) -> list[str]:
    """Imports of a folder from its own floor or from a higher one."""
    return [
        f"{where}: {folder} imports {other}"
        for where, folder, other in find_arrows(package)
        if LEVELS[other] >= LEVELS[folder]
    ]


def read_folder_graph(package: Path) -> ImportGraph:
    """The folders and files of a package that others of it import."""
    graph = defaultdict[str, set[str]](set)
    for _, folder, other in find_arrows(package):
        graph[folder].add(other)
    return graph


def read_package_graph(root: Path) -> ImportGraph:
    """The packages of the house that each of them imports."""
    return {
        package: {
            top
            for path in (root / package).rglob("*.py")
            for _, name in list_imports(path)
            if (top := name.partition(".")[0]) in PACKAGES and top != package
        }
        for package in PACKAGES
    }


def find_reachable(graph: ImportGraph, name: str) -> set[str]:
    """All names that one imports, itself or through others."""
    found, waiting = set[str](), [name]
    while waiting:
        for other in graph.get(waiting.pop(), ()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


def reduce_arrows(graph: ImportGraph, name: str) -> list[str]:
    """The imports of a name without those that follow from its other imports."""
    direct = graph.get(name, set())
    implied = {far for near in direct for far in find_reachable(graph, near)}
    return sorted(direct - implied)


def stack_floors(graph: ImportGraph) -> list[list[str]]:
    """The fewest floors, from the lowest, on which each name imports from lower ones only.

    Raises RecursionError if the graph has a cycle.
    """

    def measure(name: str) -> int:
        return 1 + max((measure(other) for other in graph.get(name, ())), default=-1)

    levels = {name: measure(name) for name in graph}
    return [[n for n in graph if levels[n] == level] for level in range(max(levels.values()) + 1)]


def draw_wall(floors: Sequence[Sequence[str]]) -> list[str]:
    """Draw floors, given from the lowest, as a wall with the highest at the top."""
    rows = [[f" {name} " for name in floor] for floor in reversed(floors)]
    width = max(sum(map(len, row)) + len(row) - 1 for row in rows)
    lines, above = list[str](), set[int]()
    for row in rows:
        spare = width - sum(map(len, row)) - len(row) + 1
        cells = [
            cell + " " * (spare // len(row) + (at < spare % len(row)))
            for at, cell in enumerate(row)
        ]
        body = "│" + "│".join(cells) + "│"
        below = {at for at, sign in enumerate(body) if sign == "│"}
        lines += [_draw_seam(above, below, width), body]
        above = below
    return [*lines, _draw_seam(above, set(), width)]


def _draw_seam(above: Set[int], below: Set[int], width: int) -> str:
    signs = {(True, True): "┼", (True, False): "┴", (False, True): "┬", (False, False): "─"}
    middle = "".join(signs[at in above, at in below] for at in range(1, width + 1))
    left, right = ("├", "┤") if above and below else ("┌", "┐") if below else ("└", "┘")
    return left + middle + right


def draw_arrows(graph: ImportGraph, names: Iterable[str]) -> Iterator[str]:
    """A line for each name that imports another, without the arrows that follow from others."""
    shown = [(name, reduce_arrows(graph, name)) for name in names]
    width = max(len(name) for name, others in shown if others)
    yield from (f"{name:{width}} → {', '.join(others)}" for name, others in shown if others)


def render_drawings(root: Path = ROOT) -> dict[str, str]:
    """Name of a drawing -> its lines, as they stand in the page."""
    house, inside = read_package_graph(root), read_folder_graph(root / "stumble")
    from_above = [name for floor in reversed(FLOORS) for name in floor]
    return {
        "house": "\n".join([*draw_wall(stack_floors(house)), "", *draw_arrows(house, PACKAGES)]),
        "inside": "\n".join([*draw_wall(FLOORS), "", *draw_arrows(inside, from_above)]),
    }


def insert_drawings(text: str, drawings: Mapping[str, str]) -> str:
    """Replace each drawing of a page, between its markers. Raises ValueError if one is missing."""
    for name, drawing in drawings.items():
        begin, end = f"<!-- drawing {name} -->\n", f"<!-- end of drawing {name} -->\n"
        head, found, rest = text.partition(begin)
        _, closed, tail = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"the page has no drawing {name!r}")
        text = f"{head}{begin}```text\n{drawing}\n```\n{end}{tail}"
    return text


if __name__ == "__main__":
    PAGE.write_text(insert_drawings(PAGE.read_text(), render_drawings()))
