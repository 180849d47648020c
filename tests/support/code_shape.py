"""Figures of names, imports and prose: `python -m tests.support.code_shape` prints them.

Other projects (mitmproxy, hypothesis, inspect_ai, httpx, mini-swe-agent), measured alike: late
imports 0.1 to 3.8 per 1,000 lines; of the classes in tests 6 to 27 % have one word and up to 11 %
share their name.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("traces", "sandbox", "recorder", "replay", "faults", "scenarios", "stumble", "attach")
_WORD = re.compile(r"[A-Z][a-z0-9]+|[A-Z]+(?![a-z])")
_OLD_WORDS = (
    "performer cage desk retold told tell say said asked ask bent bend strike strikes struck story"
    " played alone anew ours own fate lie makes stands place way_out begun judged teller marking"
    " lent hands given least beside wanted"
)
OLD_WORDS = frozenset(_OLD_WORDS.split())
"""Words of an earlier language, which a reader would not search for."""
OLD_PROSE = re.compile(
    r"\b(?:said|says|told|tells|asked of|stands for|anew|is to be had|there is none)\b",
    re.IGNORECASE,
)


@dataclass(kw_only=True)
class PartShape:
    """What was counted in the product, or in the tests."""

    lines: int = 0
    words: int = 0
    late_imports: int = 0
    old_prose: int = 0
    bindings: int = 0
    old_bindings: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    helpers: list[str] = field(default_factory=list)

    def add_file(self, text: str) -> None:
        """Count a file of Python."""
        self.lines += text.count("\n")
        self.words += len(re.findall(r"[A-Za-z]+", text))
        self.old_prose += len(OLD_PROSE.findall(text))
        tree = ast.parse(text)
        self.late_imports += len(set(_iter_late_imports(tree)))
        for node in ast.walk(tree):
            if (name := _find_bound_name(node)) is not None:
                self.bindings += 1
                self.old_bindings += name.strip("_") in OLD_WORDS
            if isinstance(node, ast.ClassDef):
                self.classes[node.name.strip("_")] += 1
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self.helpers += [] if node.name.startswith("test_") else [node.name.strip("_")]


def _iter_late_imports(tree: ast.AST) -> Iterator[int]:
    """Yield the line of each import inside a function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = (each for each in ast.walk(node))
            yield from (e.lineno for e in inside if isinstance(e, ast.Import | ast.ImportFrom))


def _find_bound_name(node: ast.AST) -> str | None:
    match node:
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
            return name
        case ast.Attribute(attr=name, ctx=ast.Store()):
            return name
    return None


def measure_shape(root: Path = ROOT) -> Mapping[str, float]:
    """Return the figures by name: shares from 0 to 1, or counts per 1,000 lines or words."""
    product, tests = PartShape(), PartShape()
    for package in PACKAGES:
        _add_files(product, (root / package).rglob("*.py"))
    _add_files(tests, (root / "tests").rglob("*.py"))
    names = tests.classes.total()
    return {
        "late_imports_per_1000_lines": product.late_imports * 1000 / product.lines,
        "old_words_product": product.old_bindings / product.bindings,
        "old_words_tests": tests.old_bindings / tests.bindings,
        "old_prose_per_1000_words_product": product.old_prose * 1000 / product.words,
        "old_prose_per_1000_words_tests": tests.old_prose * 1000 / tests.words,
        "one_word_classes_tests": sum(
            count for name, count in tests.classes.items() if len(_WORD.findall(name)) <= 1
        )
        / names,
        "reused_classes_tests": sum(n for n in tests.classes.values() if n > 1) / names,
        "one_word_helpers_tests": sum("_" not in name for name in tests.helpers)
        / len(tests.helpers),
    }


def _add_files(part: PartShape, paths: Iterable[Path]) -> None:
    for path in sorted(paths):
        part.add_file(path.read_text())


if __name__ == "__main__":
    for figure, value in measure_shape().items():
        sys.stdout.write(f"{figure:34} {value:.3f}\n")
