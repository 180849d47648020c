"""The workload's programs and golden artifacts: right, frozen, and made anew the same."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from scenarios.pipeline.compiler import clang_artifacts, golden, toolchain
from scenarios.pipeline.compiler.program_cases import (
    CASES,
    list_sample_cases,
)

PAGE = (Path(golden.__file__).parent / "language.md").read_text()

PROGRAMS = (*golden.list_graded_cases(), *list_sample_cases())


def test_every_file_belongs_to_a_sample() -> None:
    programs = {path.with_suffix("") for path in CASES.glob("*.c")}
    files = [path for path in CASES.iterdir() if path.is_file()]
    assert len(list_sample_cases()) == len(programs) == 8
    assert {path.with_suffix("") for path in files} == programs
    assert {path.suffix for path in files} == {".c", ".in", ".out", ".exit"}


@pytest.mark.parametrize("sample", [False, True])
def test_optimising_is_worth_something_in_every_program(sample: bool) -> None:
    for case in list_sample_cases() if sample else golden.list_graded_cases():
        counts = golden.count_instructions(case)
        assert counts.optimised < 0.97 * counts.plain, case.name


def test_slots_hold_one_artifact_for_each_program_and_samples_are_apart() -> None:
    names = {case.name for case in golden.list_graded_cases()}
    for stage in ("source", "T1"):
        slot = golden.load_golden_slot(stage)
        assert (slot.stage, slot.provenance, {*slot.artifacts}) == (stage, "golden", names)
        assert {*golden.load_golden_slot(stage, sample=True).artifacts} == {
            case.name for case in list_sample_cases()
        }
    assert len(golden.load_golden_slot("T0").artifacts) == 1


@cache
def lines(stage: str) -> list[tuple[str, str]]:
    return [
        (case.name, line)
        for case in PROGRAMS
        for line in golden.make_golden_artifact(stage, case.source).decode().splitlines()
    ]


def test_every_token_stands_where_it_says() -> None:
    sources = {case.name: case.source.decode().split("\n") for case in PROGRAMS}
    kinds = {
        kind for row in re.findall(r"(?m)^\| `.*", PAGE) for kind in re.findall(r"` (\w+)", row)
    }
    kinds |= {"identifier", "numeric_constant", "char_constant"}
    kinds |= {*re.findall(r"\w+", "const int void if else while for break continue return")}
    for name, line in lines("T1"):
        token = json.loads(line)
        row = sources[name][token["line"] - 1]
        at = token["column"] - 1
        before = row[:at]
        assert row[at:].startswith(token["text"]), (name, token)
        assert token["kind"] in kinds, (name, token)
        assert token["space"] is before.endswith((" ", "\t", "*/")), (name, token)
        if token["start"]:
            assert re.fullmatch(r"(\s|/\*.*?\*/|.*\*/)*", before), (name, token)


def test_a_program_is_its_tokens() -> None:
    """What is left of a source when comments and blanks are taken out of it, at other hands."""
    blank = re.compile(r"('(?:\\.|[^'])')|//[^\n]*|/\*.*?\*/|\s", re.DOTALL)
    for case in PROGRAMS:
        tokens = golden.make_golden_artifact("T1", case.source).splitlines()
        texts = [json.loads(line)["text"] for line in tokens]
        assert "".join(texts) == blank.sub(lambda found: found[1] or "", case.source.decode())


def test_trees_have_only_what_the_page_lists() -> None:
    rows = re.findall(r"(?m)^\| (\w+(?:, \w+)*) \|([^|]*)\|(.*?)\|([^|]*)\|[^|]*\|$", PAGE)
    allowed = {
        kind: {
            "kind",
            "inner",
            *(key for key, cell in zip(KEYS, cells, strict=True) if cell.strip()),
        }
        for kinds, *cells in rows
        for kind in kinds.split(", ")
    }
    seen = set()

    def walk(node: dict[str, Any]) -> None:
        seen.add(node["kind"])
        assert {*node} <= allowed[node["kind"]], node
        for each in node.get("inner", []):
            if each is None:
                assert node["kind"] == "ForStmt"
            else:
                walk(each)

    for _, line in lines("T2"):
        walk(json.loads(line))
    assert seen == {*allowed} - {"kind"}


KEYS = ("name", "value", "type")


OPERATORS = {
    "UnaryOperator": {"-", "!", "~"},
    "CompoundAssignOperator": {"+=", "-=", "*=", "/=", "%="},
    "BinaryOperator": {*re.findall(r"\S+", "= * / % + - << >> < > <= >= == != & ^ | && ||")},
}
STATEMENTS = {"CompoundStmt", "IfStmt", "WhileStmt", "ForStmt"}


def test_programs_use_the_operators_of_the_page_and_assign_only_in_statements() -> None:
    used = {kind: set[str]() for kind in OPERATORS}

    def walk(node: dict[str, Any], above: str) -> None:
        kind, value = node["kind"], node.get("value", "")
        if kind in OPERATORS:
            used[kind].add(value)
        if value == "=" or kind == "CompoundAssignOperator":
            assert above in STATEMENTS, node
        for each in filter(None, node.get("inner", [])):
            walk(each, kind)

    for _, line in lines("T2"):
        walk(json.loads(line), "")
    assert used == OPERATORS


def test_the_example_of_a_tree_is_true() -> None:
    source = b"int main(void) { int x = 1, y[2]; y[x] += -2; return y[x]; }\n"
    whole = json.loads(clang_artifacts.to_tree_artifact(toolchain.dump_tree(source)))
    [block] = whole["inner"][0]["inner"]
    shown = PAGE.partition('```json\n{"kind":"DeclStmt"')[2].partition("```")[0]
    one, two = re.split(r"\n(?=\{)", '{"kind":"DeclStmt"' + shown.strip())
    assert block["inner"][:2] == [json.loads(one), json.loads(two)]


def test_comments_and_parentheses_leave_no_node() -> None:
    bare = b"int x; int main(void) { return -x * 2; }"
    noted = b"/** Of x. */ int x; // here\nint main(void) { /*! */ return (-(x)) * ((2)); }"
    one, two = (
        clang_artifacts.to_tree_artifact(toolchain.dump_tree(source)) for source in (bare, noted)
    )
    assert one == two


def test_golden_ir_has_no_instruction_that_the_page_does_not_list() -> None:
    for_t4, for_t5 = (
        {*re.findall(r"[\w.]+", text)}
        for text in re.findall(r"(?s)- for T[45]: (.*?)(?:;\n|\.\n\n)", PAGE)
    )
    listed = {"T3": for_t4, "T4": for_t4 | for_t5}
    for stage, allowed in listed.items():
        for name, line in lines(stage):
            assert not re.search(r"![\w.]|#\d|^target|; preds|<\d+ x", line), (name, line)
            for used in re.findall(
                r"@(llvm[\w.]+)|\b(i\d+)\b|^  (?:%\d+ = )?(?:tail )?(\w+)", line
            ):
                for word in filter(None, used):
                    assert word in allowed | {"i8"} or re.match(r"  +i\d+ ", line), (name, line)
