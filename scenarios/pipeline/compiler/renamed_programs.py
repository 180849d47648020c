"""The workload with other names in its programs, drawn from the seed of a run.

Every function, variable and parameter but `main` and the runtime's gets a new name of the same
length, in a program and in all its artifacts. So what a program does, its columns and its
instructions stay as they are, and every input of a stage differs from that of every other seed: a
table of answers, keyed by the inputs of another run or of the package, has none of them.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from random import Random
from string import ascii_lowercase, ascii_uppercase

from scenarios.pipeline.compiler import golden
from scenarios.pipeline.compiler.clang_artifacts import RUNTIME
from scenarios.pipeline.compiler.types import ArtifactSlot

type NameMap = Mapping[str, str]

KEPT = RUNTIME | {"main"}
_LETTERS = ascii_lowercase + ascii_uppercase + "_"
_WORDS = """
if do int for case char else enum goto long void auto break const float short union while double
extern inline return signed sizeof static struct switch default typedef continue register restrict
unsigned volatile asm bool true false ra sp gp tp fp pc zero
"""
_TAKEN = KEPT | frozenset(_WORDS.split())
"""Keywords, and registers of the assembler."""
_TREE_NAME = re.compile(rb'"name":"(\w+)"')
_IR_SYMBOL = re.compile(rb"@((?:__const\.)?)([\w.]+)")
_ASSEMBLY_SYMBOL = re.compile(rb"(?<![\w.$@%\"])((?:\.L__const\.)?)([A-Za-z_][\w.]*)")
_ASSEMBLY_LINE = re.compile(rb"(?m)^([ \t]+\S+)([ \t][^\n]*)?$|^([^\s][^\n]*)$")
_UNNAMED_DIRECTIVES = (b".section", b".file", b".ident", b".attribute")


@cache
def make_renamed_slot(stage: str, seed: int) -> ArtifactSlot:
    """Return the golden slot of a stage, or of `source`, with the names of a seed; 0: the package's
    own.
    """
    if stage == "T0":
        return golden.load_golden_slot(stage, seed=seed)
    slot = golden.make_source_slot() if stage == "source" else golden.load_golden_slot(stage)
    if not seed:
        return slot
    artifacts = {
        name: rename_artifact(stage, data, draw_names(name, seed), _load_tokens(name))
        for name, data in slot.artifacts.items()
    }
    return ArtifactSlot(stage=stage, provenance=slot.provenance, artifacts=artifacts)


@cache
def draw_names(program: str, seed: int) -> NameMap:
    """Map each name of a program to another one of the same length, no two to the same."""
    used = {_get_text(line) for line in _load_tokens(program).splitlines() if _is_name(line)}
    key = hashlib.sha256(f"{seed} {program}".encode()).digest()
    rng, names, taken = Random(key), dict[str, str](), set(_TAKEN)
    for name in sorted(used - KEPT):
        new = name
        while new in taken or new == name:
            new = rng.choice(_LETTERS[:-1]) + "".join(
                rng.choice(_LETTERS) for _ in range(len(name) - 1)
            )
        names[name] = new
        taken.add(new)
    return names


def rename_artifact(stage: str, data: bytes, names: NameMap, tokens: bytes) -> bytes:
    """Return a program or an artifact of it with other names; `tokens` are the program's."""
    match stage:
        case "source":
            return _rename_source(data, names, tokens)
        case "T1":
            return b"".join(_rename_token(line, names) for line in data.splitlines(keepends=True))
        case "T2":
            return _TREE_NAME.sub(lambda found: b'"name":"%s"' % _map(found[1], names), data)
        case "T3" | "T4":
            return _IR_SYMBOL.sub(
                lambda found: b"@" + found[1] + _map_symbol(found[2], names, bool(found[1])), data
            )
        case _:
            return _ASSEMBLY_LINE.sub(lambda found: _rename_assembly_line(found, names), data)


def _load_tokens(program: str) -> bytes:
    return golden.load_frozen_artifacts().artifacts[f"T1/{program}"]


def _is_name(line: bytes) -> bool:
    return line.startswith(b'{"kind":"identifier"')


def _get_text(line: bytes) -> str:
    return str(json.loads(line)["text"])


def _rename_source(source: bytes, names: NameMap, tokens: bytes) -> bytes:
    lines = source.splitlines(keepends=True)
    for token in (json.loads(line) for line in tokens.splitlines() if _is_name(line)):
        at, start, old = token["line"] - 1, token["column"] - 1, token["text"]
        line = lines[at]
        lines[at] = line[:start] + _map(old.encode(), names) + line[start + len(old) :]
    return b"".join(lines)


def _rename_token(line: bytes, names: NameMap) -> bytes:
    if not _is_name(line):
        return line
    old = _get_text(line).encode()
    return line.replace(b'"text":"%s"' % old, b'"text":"%s"' % _map(old, names), 1)


def _rename_assembly_line(found: re.Match[bytes], names: NameMap) -> bytes:
    """Rename the operands of an instruction or directive, or a label."""
    if found[3] is not None:
        return _ASSEMBLY_SYMBOL.sub(lambda symbol: _map_assembly(symbol, names), found[3])
    operands = found[2] or b""
    if not found[1].strip().startswith(_UNNAMED_DIRECTIVES):
        operands = _ASSEMBLY_SYMBOL.sub(lambda symbol: _map_assembly(symbol, names), operands)
    return found[1] + operands


def _map_assembly(symbol: re.Match[bytes], names: NameMap) -> bytes:
    return symbol[1] + _map_symbol(symbol[2], names, bool(symbol[1]))


def _map_symbol(symbol: bytes, names: NameMap, all_parts: bool) -> bytes:
    """Rename `gcd`, or the `gcd` of `gcd.1`, or both parts of the `main.table` of a constant."""
    if symbol.startswith(b"llvm."):
        return symbol
    first, *rest = symbol.split(b".")
    return b".".join(
        (_map(first, names), *((_map(each, names) for each in rest) if all_parts else rest))
    )


def _map(name: bytes, names: NameMap) -> bytes:
    return names.get(name.decode(), name.decode()).encode()
