"""Convert clang's output into artifacts, without ids, addresses and paths; pure functions.

The forms are defined in language.md; anything else in clang's output is dropped here.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import cast

type Json = None | bool | int | str | list["Json"] | dict[str, "Json"]
type Node = dict[str, Json]

RUNTIME = frozenset({"get_int", "get_char", "put_int", "put_char"})
"""Runtime functions that every program can call without declaring them."""

_TOKEN = re.compile(
    r"^(?P<kind>\w+) '(?P<text>.*)'\t(?P<start> \[StartOfLine\])?(?P<space> \[LeadingSpace\])?"
    r"\tLoc=<program\.c:(?P<line>\d+):(?P<column>\d+)>$",
    re.MULTILINE,
)
_WRAPPERS = frozenset({"ImplicitCastExpr", "ParenExpr"})
_VALUES = ("value", "opcode")


def to_token_artifact(dump: bytes) -> bytes:
    """Convert a token dump into one line of JSON per token, without the end-of-file token."""
    lines = [
        {
            "kind": match["kind"],
            "text": match["text"],
            "line": int(match["line"]),
            "column": int(match["column"]),
            "start": match["start"] is not None,
            "space": match["space"] is not None,
        }
        for match in _TOKEN.finditer(dump.decode())
        if match["kind"] != "eof"
    ]
    return "".join(f"{_to_compact_json(line)}\n" for line in lines).encode()


def to_tree_artifact(dump: bytes) -> bytes:
    """Convert an AST dump into one line of JSON, without implicit nodes and the runtime's
    header.
    """
    root = cast(Node, json.loads(dump))
    top = [
        _to_artifact_node(each)
        for each in _list_child_nodes(root)
        if not each.get("isImplicit") and each.get("name") not in RUNTIME
    ]
    return (
        f"{_to_compact_json({'kind': 'TranslationUnitDecl', 'inner': list[Json](top)})}\n".encode()
    )


def _to_artifact_node(said: Node) -> Node | None:
    """Convert a node; None for an omitted part of a `for`, which clang writes as {}."""
    if "kind" not in said:
        return None
    if said["kind"] in _WRAPPERS:
        return _to_artifact_node(_list_child_nodes(said)[0])
    node: Node = {"kind": said["kind"]}
    if name := said.get("name") or _find_referenced_name(said):
        node["name"] = name
    for key in _VALUES:
        if key in said:
            node["value"] = str(said[key])
    if isinstance(type_node := said.get("type"), dict):
        node["type"] = type_node["qualType"]
    inner = _list_node_parts(said)
    if inner:
        node["inner"] = [_to_artifact_node(each) for each in inner]
    return node


def _find_referenced_name(said: Node) -> Json:
    declared = said.get("referencedDecl")
    return declared["name"] if isinstance(declared, dict) else None


def _list_node_parts(said: Node) -> list[Node]:
    """Return the children to convert.

    The filler of an initialiser list shorter than its array is left out, and so is the second child
    of clang's `for`, the slot of a condition that declares a variable.
    """
    if "array_filler" in said:
        return cast(list[Node], said["array_filler"])[1:]
    parts = _list_child_nodes(said)
    return [*parts[:1], *parts[2:]] if said["kind"] == "ForStmt" else parts


def _list_child_nodes(said: Node) -> list[Node]:
    """Return the children except comments: clang parses `/** these */` as documentation."""
    parts = cast(list[Node], said.get("inner", []))
    return [part for part in parts if part.get("kind") != "FullComment"]


def _to_compact_json(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"))


_NO_IR = re.compile(r"^(?:source_filename|target |attributes #|!)")
_NOISE = re.compile(r" (?:dso_local|local_unnamed_addr|#\d+)\b|, !\w[\w.]* !\d+| *; preds = .*$")


def to_ir_artifact(data: bytes) -> bytes:
    """Strip IR of target, attribute groups, metadata and comments, none of which it needs."""
    lines = [
        _NOISE.sub("", line)
        for line in data.decode().splitlines()
        if not _NO_IR.match(line) and not line.startswith(";")
    ]
    return _join_lines(lines)


_LISTED = re.compile(r"(?s)- for T[45]: (.*?)(?:;\n|\.\n\n)")
_INSTRUCTION = re.compile(r"@(llvm[\w.]+)|\b(i\d+)\b|^  (?:%\d+ = )?(?:tail )?(\w+)")
_SWITCH_CASE = re.compile(r"  +i\d+ ")
_UNLISTED_FORMS = re.compile(r"![\w.]|#\d|<\d+ x|<\{")


@cache
def list_instructions() -> tuple[frozenset[str], frozenset[str]]:
    """Return the instructions and types of T3's IR, and of T4's, that the language page lists."""
    page = (Path(__file__).parent / "language.md").read_text()
    plain, more = (frozenset(re.findall(r"[\w.]+", text)) for text in _LISTED.findall(page))
    return plain, plain | more


def find_unlisted_instructions(ir: bytes) -> frozenset[str]:
    """Return what optimised IR has and the page does not list."""
    _, allowed = list_instructions()
    found = set[str]()
    for line in ir.decode().splitlines():
        if not _SWITCH_CASE.match(line):
            found |= {word for match in _INSTRUCTION.findall(line) for word in match if word}
        found |= set(_UNLISTED_FORMS.findall(line))
    return frozenset(found - allowed)


_NO_ASSEMBLY = re.compile(
    r'^\t\.(?:attribute|file|ident|addrsig|section\t"\.note\.GNU-stack)|^\s*#'
)


def to_assembly_artifact(data: bytes) -> bytes:
    """Strip assembly of comments and descriptive directives."""
    lines = [
        line.partition("#")[0].rstrip()
        for line in data.decode().splitlines()
        if not _NO_ASSEMBLY.match(line)
    ]
    return _join_lines(lines)


def _join_lines(lines: list[str]) -> bytes:
    """Join lines with at most one empty line in a row and none at either end."""
    return (re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n").encode()
