"""The change made by an injection: the tokens, fields and words that identify it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from faults.judging.identifiers import is_specific_token
from faults.judging.value_tokens import (
    JsonLeaf,
    extract_field_pairs,
    extract_tokens,
    find_json_leaves,
)
from traces.model import Injection

VALUE_FAMILIES = ("S", "V", "X")
"""Families whose injected value an agent may copy; an error has no value to copy."""


@dataclass(frozen=True, kw_only=True)
class InjectedChange:
    """A result before and after the injection."""

    injection: Injection
    original: str
    mutated: str

    @cached_property
    def introduced_tokens(self) -> frozenset[str]:
        """Tokens only in the changed result."""
        return extract_tokens(self.mutated) - extract_tokens(self.original)

    @cached_property
    def removed_tokens(self) -> frozenset[str]:
        """Tokens only in the true result."""
        return extract_tokens(self.original) - extract_tokens(self.mutated)

    @cached_property
    def changed_leaves(self) -> tuple[tuple[JsonLeaf, JsonLeaf], ...]:
        """Values that differ at the same path, as (was, now)."""
        before = {leaf.path: leaf for leaf in find_json_leaves(self.original)}
        after = {leaf.path: leaf for leaf in find_json_leaves(self.mutated)}
        both = [(before[path], after[path]) for path in before if path in after]
        return tuple((was, now) for was, now in both if was.value != now.value)

    @property
    def is_unreadable(self) -> bool:
        """Whether a JSON result is no JSON any more."""
        return bool(find_json_leaves(self.original)) and not find_json_leaves(self.mutated)

    @property
    def is_failure(self) -> bool:
        """Whether the result shows by itself that the call failed: by its status, form or words."""
        return self.injection.detect in ("D0", "D1")

    @cached_property
    def changed_fields(self) -> tuple[str, ...]:
        """Names of values that differ or moved; for a sham, all names.

        A sham must trigger the same detector as a fault at its place, which may change any of them.
        """
        if self.injection.sham:
            return tuple(dict.fromkeys(leaf.name for leaf in find_json_leaves(self.original)))
        after = {leaf.path for leaf in find_json_leaves(self.mutated)}
        gone = [leaf for leaf in find_json_leaves(self.original) if leaf.path not in after]
        moved = [name for leaf in gone for name in (leaf.name, leaf.list_name) if name]
        return tuple(dict.fromkeys((*(was.name for was, _ in self.changed_leaves), *moved)))

    @cached_property
    def anchor_words(self) -> tuple[str, ...]:
        """Words that tie a statement to the injection: the tool and the changed fields."""
        return tuple(word for word in (self.injection.tool, *self.changed_fields) if word)

    @cached_property
    def moved_tokens(self) -> frozenset[str]:
        """Tokens in both results, of values that moved."""
        after = {(leaf.path, leaf.value, leaf.kind) for leaf in find_json_leaves(self.mutated)}
        moved_leaves = (
            x for x in find_json_leaves(self.original) if (x.path, x.value, x.kind) not in after
        )
        tokens = frozenset(atom for leaf in moved_leaves for atom in extract_tokens(leaf.value))
        return tokens & extract_tokens(self.mutated)

    @cached_property
    def replaced_tokens(self) -> frozenset[str]:
        """Tokens that another source may contain: the removed ones; for a sham, all."""
        return extract_tokens(self.original) if self.injection.sham else self.removed_tokens

    @cached_property
    def linking_tokens(self) -> frozenset[str]:
        """Tokens that tie a statement to the injection: introduced and removed ones."""
        if self.injection.sham:
            return frozenset(filter(is_specific_token, self.replaced_tokens))
        return frozenset(filter(is_specific_token, self.introduced_tokens | self.removed_tokens))

    @cached_property
    def value_texts(self) -> tuple[str, ...]:
        """Texts of the values themselves: a trouble word inside one is not a remark."""
        texts = {leaf.value for pair in self.changed_leaves for leaf in pair if leaf.kind == "text"}
        return tuple(sorted((text for text in texts if len(text) >= 3), key=len, reverse=True))

    @cached_property
    def token_spellings(self) -> Mapping[str, str]:
        """The introduced tokens as they are spelled in the changed result."""
        spellings: dict[str, str] = {}
        for _, now in self.changed_leaves:
            for atom in extract_tokens(now.value):
                spellings[atom] = now.value
        return spellings

    @cached_property
    def removed_pairs(self) -> frozenset[str]:
        """Field-value pairs only in the true result."""
        return extract_field_pairs(self.original) - extract_field_pairs(self.mutated)

    def describe(self) -> str | None:
        """Describe the change briefly; None if there is no simple description."""
        if not self.original or not self.mutated or self.original == self.mutated:
            return None
        if self.changed_leaves and _find_leaf_paths(self.original) == _find_leaf_paths(
            self.mutated
        ):
            swaps = (
                f"{was.path}: {was.value} -> {now.value}" for was, now in self.changed_leaves[:3]
            )
            more = len(self.changed_leaves) - 3
            return ", ".join(swaps) + (f" and {more} more" if more > 0 else "")
        if self.original.startswith(self.mutated):
            before, after = len(self.original.encode()), len(self.mutated.encode())
            return f"cut to {after} of {before} bytes"
        return None


def _find_leaf_paths(text: str) -> frozenset[str]:
    return frozenset(leaf.path for leaf in find_json_leaves(text))


def to_injected_change(injection: Injection) -> InjectedChange:
    """Return the change of an injection; empty if nothing is known of it."""
    return InjectedChange(
        injection=injection,
        original=(injection.original or b"").decode("utf-8", "replace"),
        mutated=(injection.mutated or b"").decode("utf-8", "replace"),
    )
