"""A lazy pattern is compiled once, when it is used, and every one of ours can be."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from traces.lazy_pattern import _LazyPattern, compile_lazily

ROOT = Path(__file__).resolve().parents[3]
MODULES = sorted(
    path
    for package in ("faults", "recorder", "replay", "traces")
    for path in (ROOT / package).rglob("*.py")
    if "compile_lazily(" in path.read_text() and path.name != "lazy_pattern.py"
)


def test_it_is_compiled_when_it_is_used() -> None:
    pattern = compile_lazily(r"a(?P<b>b+)", re.IGNORECASE)
    assert set(vars(pattern)) == {"pattern", "_flags"}
    match = pattern.search("xABBx")
    assert match
    assert match["b"] == "BB"
    assert pattern.sub("-", "xabx") == "x-x"
    assert (pattern.pattern, pattern.groups) == (r"a(?P<b>b+)", 1)
    assert compile_lazily(rb"\d").findall(b"a1b2") == [b"1", b"2"]


def test_a_wrong_expression_is_refused_when_it_is_used() -> None:
    pattern = compile_lazily("(")
    with pytest.raises(re.error):
        pattern.search("")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_expression_can_be_compiled(path: Path) -> None:
    module = import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    patterns = [each for each in vars(module).values() if isinstance(each, _LazyPattern)]
    assert patterns
    for each in patterns:
        assert each.fullmatch
