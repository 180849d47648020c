"""The forms of the artifacts, made of what clang says: pure, and free of ids, addresses and paths.

The page language.md defines the forms; what clang says beyond them is dropped here.
"""

import json
import re
from typing import cast

type Json = None | bool | int | str | list["Json"] | dict[str, "Json"]
type Node = dict[str, Json]

RUNTIME = frozenset({"get_int", "get_char", "put_int", "put_char"})
"""Functions that every program knows without declaring them."""

_TOKEN = re.compile(
    r"^(?P<kind>\w+) '(?P<text>.*)'\t(?P<start> \[StartOfLine\])?(?P<space> \[LeadingSpace\])?"
    r"\tLoc=<program\.c:(?P<line>\d+):(?P<column>\d+)>$",
    re.MULTILINE,
)
_WRAPPERS = frozenset({"ImplicitCastExpr", "ParenExpr"})
_VALUES = ("value", "opcode")


def tokens(dump: bytes) -> bytes:
    """One line of JSON for each token of the program; the end of the file is none."""
    lines = [
        {
            "kind": found["kind"],
            "text": found["text"],
            "line": int(found["line"]),
            "column": int(found["column"]),
            "start": found["start"] is not None,
            "space": found["space"] is not None,
        }
        for found in _TOKEN.finditer(dump.decode())
        if found["kind"] != "eof"
    ]
    return "".join(f"{_compact(line)}\n" for line in lines).encode()


def tree(dump: bytes) -> bytes:
    """The program's tree as one line of JSON, without what clang or the runtime's header added."""
    whole = cast(Node, json.loads(dump))
    own = [
        _node(each)
        for each in _children(whole)
        if not each.get("isImplicit") and each.get("name") not in RUNTIME
    ]
    return f"{_compact({'kind': 'TranslationUnitDecl', 'inner': list[Json](own)})}\n".encode()


def _node(said: Node) -> Node | None:
    """A node of our form; None for a part that a `for` leaves out, which clang writes as {}."""
    if "kind" not in said:
        return None
    if said["kind"] in _WRAPPERS:
        return _node(_children(said)[0])
    node: Node = {"kind": said["kind"]}
    if name := said.get("name") or _referenced(said):
        node["name"] = name
    for key in _VALUES:
        if key in said:
            node["value"] = str(said[key])
    if isinstance(written := said.get("type"), dict):
        node["type"] = written["qualType"]
    inner = _parts(said)
    if inner:
        node["inner"] = [_node(each) for each in inner]
    return node


def _referenced(said: Node) -> Json:
    declared = said.get("referencedDecl")
    return declared["name"] if isinstance(declared, dict) else None


def _parts(said: Node) -> list[Node]:
    """The children, without the filler of a list that is shorter than its array, and without the
    place of a condition that declares, which the second child of clang's `for` is."""
    if "array_filler" in said:
        return cast(list[Node], said["array_filler"])[1:]
    parts = _children(said)
    return [*parts[:1], *parts[2:]] if said["kind"] == "ForStmt" else parts


def _children(said: Node) -> list[Node]:
    """All but comments: clang reads `/** these */` as documentation of what follows."""
    parts = cast(list[Node], said.get("inner", []))
    return [part for part in parts if part.get("kind") != "FullComment"]


def _compact(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"))


_NO_IR = re.compile(r"^(?:source_filename|target |attributes #|!)")
_NOISE = re.compile(r" (?:dso_local|local_unnamed_addr|#\d+)\b|, !\w[\w.]* !\d+| *; preds = .*$")


def ir(said: bytes) -> bytes:
    """IR without its target, attribute groups, metadata and comments, none of which it needs."""
    kept = [
        _NOISE.sub("", line)
        for line in said.decode().splitlines()
        if not _NO_IR.match(line) and not line.startswith(";")
    ]
    return _paragraphs(kept)


_NO_ASSEMBLY = re.compile(
    r'^\t\.(?:attribute|file|ident|addrsig|section\t"\.note\.GNU-stack)|^\s*#'
)


def assembly(said: bytes) -> bytes:
    """Assembly without comments and what it says of itself."""
    kept = [
        line.partition("#")[0].rstrip()
        for line in said.decode().splitlines()
        if not _NO_ASSEMBLY.match(line)
    ]
    return _paragraphs(kept)


def _paragraphs(lines: list[str]) -> bytes:
    """At most one empty line at a time, and none at either end."""
    return (re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n").encode()
