"""Score a syntax tree: T2."""

import json
from collections.abc import Iterator

from msgspec import Struct

from scenarios.pipeline.compiler.scoring.artifact_score import (
    ArtifactScore,
    make_artifact_score,
    score_unreadable_artifact,
)
from scenarios.pipeline.compiler.scoring.sequence_alignment import align_sequences

MAX_NODE_RATIO = 4
MAX_DEPTH = 200
"""A tree with over MAX_NODE_RATIO times the expected nodes, or deeper than this, is not scored."""


class SyntaxNode(Struct, frozen=True, kw_only=True):
    """A node; an omitted part has kind None."""

    kind: object
    name: object
    value: object
    type: object
    inner: tuple["SyntaxNode", ...]

    @property
    def compared_parts(self) -> tuple[object, object, object]:
        """The fields that `is_same` compares."""
        return self.kind, self.name, self.value

    def __str__(self) -> str:
        parts = (self.kind, self.name, self.value, self.type and f"'{self.type}'")
        return " ".join(str(each) for each in parts if each is not None) or "nothing"


class NodePair(Struct, frozen=True, kw_only=True):
    """Two nodes at the same place, one of which may be missing."""

    path: str
    wanted: SyntaxNode | None
    got: SyntaxNode | None

    @property
    def is_same(self) -> bool:
        return (
            self.wanted is not None
            and self.got is not None
            and self.wanted.compared_parts == self.got.compared_parts
        )

    @property
    def has_type(self) -> bool:
        """Whether there is a type, or a list's number of elements, to compare."""
        return any(each is not None and _has_type(each) for each in (self.wanted, self.got))

    @property
    def has_same_type(self) -> bool:
        if self.wanted is None or self.got is None or not self.is_same:
            return False
        lists = self.wanted.kind == LIST_KIND and len(self.wanted.inner) != len(self.got.inner)
        return self.wanted.type == self.got.type and not lists

    def __str__(self) -> str:
        text = f"{self.path}: expected {self.wanted or 'none'}, got {self.got or 'none'}"
        if (
            self.wanted is None
            or self.got is None
            or not self.is_same
            or self.got.kind != LIST_KIND
        ):
            return text
        return f"{text} ({len(self.got.inner)} elements instead of {len(self.wanted.inner)})"


LIST_KIND = "InitListExpr"


def _has_type(node: SyntaxNode) -> bool:
    return node.type is not None or node.kind == LIST_KIND


def score_tree(golden: bytes, got: bytes) -> ArtifactScore:
    """Score each node: 0.6 for kind, name and value, 0.4 for the type of those that have one.

    An initialiser list must also have the right number of elements. The children of two nodes are
    aligned, so that a missing statement does not invalidate the following ones; nodes without a
    counterpart, on either side, count as wrong.
    """
    try:
        got_root = _parse_tree(got)
    except (ValueError, RecursionError) as error:
        return score_unreadable_artifact(f"no tree: {error}")
    golden_root = _parse_tree(golden)
    node_count, limit = _count_nodes(got_root), MAX_NODE_RATIO * _count_nodes(golden_root) + 64
    if node_count > limit:
        return make_artifact_score(
            0.0, f"{node_count} nodes instead of {_count_nodes(golden_root)}"
        )
    pairs = list(_pair_nodes("", golden_root, got_root))
    nodes = sum(each.is_same for each in pairs), len(pairs)
    typed = [each for each in pairs if each.has_type]
    types = sum(each.has_same_type for each in typed), len(typed)
    score = 60 * _compute_ratio(*nodes) + 40 * _compute_ratio(*types)
    differing = (
        each for each in pairs if not each.is_same or (each.has_type and not each.has_same_type)
    )
    return make_artifact_score(score, next((str(each) for each in differing), ""))


def _compute_ratio(right: int, whole: int) -> float:
    return right / whole if whole else 1.0


def _pair_nodes(path: str, wanted: SyntaxNode | None, got: SyntaxNode | None) -> Iterator[NodePair]:
    """Yield the pairs of both trees in preorder."""
    node = wanted or got
    assert node is not None
    here = f"{path}/{node.kind}"
    yield NodePair(path=here, wanted=wanted, got=got)
    golden_children, got_children = (each.inner if each else () for each in (wanted, got))
    for n, m in align_sequences(
        [each.compared_parts for each in golden_children],
        [each.compared_parts for each in got_children],
    ):
        number = n if n is not None else m
        inside = f"{here}[{number}]"
        left, right = (
            None if n is None else golden_children[n],
            None if m is None else got_children[m],
        )
        yield from _pair_nodes(inside, left, right)


def _count_nodes(node: SyntaxNode) -> int:
    return 1 + sum(_count_nodes(each) for each in node.inner)


def _parse_tree(text: bytes) -> SyntaxNode:
    return _parse_node(json.loads(text), 0)


def _parse_node(said: object, depth: int) -> SyntaxNode:
    if depth > MAX_DEPTH:
        raise ValueError(f"deeper than {MAX_DEPTH} nodes")
    if said is None:
        return SyntaxNode(kind=None, name=None, value=None, type=None, inner=())
    if not isinstance(said, dict):
        raise ValueError(f"a node is no object: {json.dumps(said)[:80]}")
    inner = said.get("inner", [])
    if not isinstance(inner, list):
        raise ValueError(f"inner of a {said.get('kind')} is no list")
    parts = {
        key: value if isinstance(value := said.get(key), str) else None
        for key in ("kind", "name", "value", "type")
    }
    return SyntaxNode(**parts, inner=tuple(_parse_node(each, depth + 1) for each in inner))
