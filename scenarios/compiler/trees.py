"""How right a syntax tree is: T2."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from scenarios.compiler.alignment import pairs
from scenarios.compiler.judged import Judged, scored, unreadable

MANY = 4
DEEP = 200
"""A tree with more than MANY times as many nodes as there are, or deeper, is not looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node, or the place of one that is left out (kind None)."""

    kind: object
    name: object
    value: object
    type: object
    inner: tuple["Node", ...]

    @property
    def own(self) -> tuple[object, object, object]:
        """What the first rule compares."""
        return self.kind, self.name, self.value

    def __str__(self) -> str:
        said = (self.kind, self.name, self.value, self.type and f"'{self.type}'")
        return " ".join(str(each) for each in said if each is not None) or "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Both:
    """Two nodes in the same place, one of which may be missing."""

    path: str
    wanted: Node | None
    got: Node | None

    @property
    def same(self) -> bool:
        return self.wanted is not None and self.got is not None and self.wanted.own == self.got.own

    @property
    def typed(self) -> bool:
        """Whether there is a type, or a list with its number of elements, to be compared."""
        return any(each is not None and _typed(each) for each in (self.wanted, self.got))

    @property
    def same_type(self) -> bool:
        if self.wanted is None or self.got is None or not self.same:
            return False
        lists = self.wanted.kind == LIST and len(self.wanted.inner) != len(self.got.inner)
        return self.wanted.type == self.got.type and not lists

    def __str__(self) -> str:
        said = f"{self.path}: expected {self.wanted or 'none'}, got {self.got or 'none'}"
        if self.wanted is None or self.got is None or not self.same or self.got.kind != LIST:
            return said
        return f"{said} ({len(self.got.inner)} elements instead of {len(self.wanted.inner)})"


LIST = "InitListExpr"


def _typed(node: Node) -> bool:
    return node.type is not None or node.kind == LIST


def judge(golden: bytes, got: bytes) -> Judged:
    """0.6 for the kind, name and value of each node, 0.4 for the type of those that have one.

    A list of initial values also has as many elements as it should. The children of two nodes
    are aligned, so that a missing statement does not spoil the ones after it; nodes without a
    counterpart, on either side, count as wrong.
    """
    try:
        found = _read(got)
    except (ValueError, RecursionError) as error:
        return unreadable(f"no tree: {error}")
    wanted = _read(golden)
    many, most = _count(found), MANY * _count(wanted) + 64
    if many > most:
        return scored(0.0, f"{many} nodes instead of {_count(wanted)}")
    both = list(_together("", wanted, found))
    nodes = sum(each.same for each in both), len(both)
    typed = [each for each in both if each.typed]
    types = sum(each.same_type for each in typed), len(typed)
    score = 60 * _share(*nodes) + 40 * _share(*types)
    wrong = (each for each in both if not each.same or (each.typed and not each.same_type))
    return scored(score, next((str(each) for each in wrong), ""))


def _share(right: int, whole: int) -> float:
    return right / whole if whole else 1.0


def _together(path: str, wanted: Node | None, got: Node | None) -> Iterator[Both]:
    """All places of both trees, from the top down and from left to right."""
    node = wanted or got
    assert node is not None
    here = f"{path}/{node.kind}"
    yield Both(path=here, wanted=wanted, got=got)
    ours, theirs = (each.inner if each else () for each in (wanted, got))
    for n, m in pairs([each.own for each in ours], [each.own for each in theirs]):
        number = n if n is not None else m
        inside = f"{here}[{number}]"
        left, right = None if n is None else ours[n], None if m is None else theirs[m]
        yield from _together(inside, left, right)


def _count(node: Node) -> int:
    return 1 + sum(_count(each) for each in node.inner)


def _read(text: bytes) -> Node:
    return _node(json.loads(text), 0)


def _node(said: object, depth: int) -> Node:
    if depth > DEEP:
        raise ValueError(f"deeper than {DEEP} nodes")
    if said is None:
        return Node(kind=None, name=None, value=None, type=None, inner=())
    if not isinstance(said, dict):
        raise ValueError(f"a node is no object: {json.dumps(said)[:80]}")
    inner = said.get("inner", [])
    if not isinstance(inner, list):
        raise ValueError(f"inner of a {said.get('kind')} is no list")
    parts = {
        key: value if isinstance(value := said.get(key), str) else None
        for key in ("kind", "name", "value", "type")
    }
    return Node(**parts, inner=tuple(_node(each, depth + 1) for each in inner))
