"""The workload's programs and golden artifacts: right, frozen, and made anew the same."""

import copy
import hashlib
import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from scenarios.pipeline.compiler import clang_artifacts, golden, toolchain
from scenarios.pipeline.compiler.golden import FROZEN, InstructionCounts
from scenarios.pipeline.compiler.program_cases import (
    CASES,
    list_graded_cases,
    list_sample_cases,
    load_program_cases,
)
from stumble.cli.pipeline.golden import golden as command

PAGE = (Path(golden.__file__).parent / "language.md").read_text()
OWN = Path(golden.__file__).parent / "runtime" / "runtime.h"

# The runtime for this machine itself.
HOST = r"""
#include <stdio.h>
int get_char(void) { return getchar(); }
int get_int(void) { int value = 0; return scanf("%d", &value) == 1 ? value : 0; }
void put_int(int value) { printf("%d", value); }
void put_char(int value) { putchar(value); }
"""


def test_there_are_programs_in_three_sizes_and_samples_of_each() -> None:
    sizes = [case.size for case in list_graded_cases()]
    assert len(sizes) >= 60
    assert {size: sizes.count(size) for size in ("small", "medium", "large")} == {
        "small": 25,
        "medium": 24,
        "large": 14,
    }
    assert len(list_sample_cases()) == 8
    assert {case.size for case in list_sample_cases()} == {"small", "medium", "large"}
    names = [case.name for case in load_program_cases()]
    assert len({*names}) == len(names)


def test_every_file_belongs_to_a_program() -> None:
    programs = {path.with_suffix("") for path in CASES.rglob("*.c")}
    files = [path for path in CASES.rglob("*") if path.is_file()]
    assert {path.with_suffix("") for path in files} == programs
    assert {path.suffix for path in files} == {".c", ".in", ".out", ".exit"}


def test_sizes_are_what_they_are_called() -> None:
    plain = {
        case.name: golden.count_instructions(case).plain for case in list_graded_cases()
    }
    of = {
        size: [plain[c.name] for c in list_graded_cases() if c.size == size]
        for size in ("small", "large")
    }
    assert max(of["small"]) < 30_000
    assert min(of["large"]) > 150_000
    assert max(of["large"]) < 6_000_000


def test_optimising_is_worth_something_in_every_program() -> None:
    for name, counts in golden.load_instruction_counts().items():
        assert counts.optimised < 0.97 * counts.plain, name


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_all_artifacts_made_anew_and_run_are_as_frozen() -> None:
    made = CliRunner().invoke(command)
    assert made.output == "355 artifacts and 71 counts are as frozen\n"
    assert made.exit_code == 0


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_another_compiler_for_another_machine_comes_to_the_same(tmp_path: Path) -> None:
    """gcc watches over what the page calls *never*, too: no program does any of it."""
    if (gcc := shutil.which("gcc")) is None:
        pytest.skip("no gcc here")
    runtime = tmp_path / "host.c"
    runtime.write_text(HOST)
    checks = ("-fsanitize=undefined,bounds-strict,address", "-fno-sanitize=shift-base")
    watched = ("-fwrapv", *checks, "-ftrivial-auto-var-init=pattern")  # of what has no value yet
    how = (gcc, "-std=c11", "-O1", "-w", *watched, "-fno-sanitize-recover=all")
    subprocess.run([*how, "-c", runtime, "-o", tmp_path / "host.o"], check=True, timeout=60)
    for case in load_program_cases():
        program = tmp_path / "program.c"
        program.write_bytes(case.source)
        words = (*how, "-include", OWN, program, tmp_path / "host.o", "-o", tmp_path / "program")
        subprocess.run(words, check=True, timeout=60)
        did = subprocess.run(
            [tmp_path / "program"], input=case.stdin, capture_output=True, timeout=60
        )
        right = (case.stdout, case.exit, b"")
        assert (did.stdout, did.returncode, did.stderr) == right, case.name
        assert case.sample or _run_without_input(tmp_path / "program") != right, case.name


def _run_without_input(program: Path) -> tuple[bytes, int, bytes] | None:
    """What a program does that is not told its input; a stage that runs it could print that."""
    try:
        did = subprocess.run([program], input=b"", capture_output=True, timeout=5)
    except subprocess.TimeoutExpired:
        return None
    return did.stdout, did.returncode, did.stderr


def test_slots_hold_one_artifact_for_each_program_and_samples_are_apart() -> None:
    names = {case.name for case in list_graded_cases()}
    for stage in ("T1", "T2", "T3", "T4", "T5"):
        slot = golden.load_golden_slot(stage)
        assert (slot.stage, slot.provenance, {*slot.artifacts}) == (stage, "golden", names)
        assert {*golden.load_golden_slot(stage, sample=True).artifacts} == {
            case.name for case in list_sample_cases()
        }
    assert {*golden.load_golden_slot("source").artifacts} == names
    assert len(golden.load_golden_slot("T0").artifacts) == 1


@cache
def lines(stage: str) -> list[tuple[str, str]]:
    held = golden.load_frozen_artifacts().artifacts.items()
    return [
        (name, line)
        for name, data in held
        if name.startswith(stage)
        for line in data.decode().splitlines()
    ]


def test_every_token_stands_where_it_says() -> None:
    sources = {case.name: case.source.decode().split("\n") for case in load_program_cases()}
    kinds = {
        kind for row in re.findall(r"(?m)^\| `.*", PAGE) for kind in re.findall(r"` (\w+)", row)
    }
    kinds |= {"identifier", "numeric_constant", "char_constant"}
    kinds |= {*re.findall(r"\w+", "const int void if else while for break continue return")}
    for name, line in lines("T1"):
        token = json.loads(line)
        row = sources[name.removeprefix("T1/")][token["line"] - 1]
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
    for case in load_program_cases():
        slot = golden.load_golden_slot("T1", sample=case.sample)
        texts = [json.loads(line)["text"] for line in slot.artifacts[case.name].splitlines()]
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


def frozen_in(folder: Path) -> Path:
    shutil.copytree(FROZEN, folder)
    return folder


def rewritten(path: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    with zipfile.ZipFile(path) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    change(held)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in held.items():
            archive.writestr(name, data)


def test_a_changed_artifact_is_named(tmp_path: Path) -> None:
    folder = frozen_in(tmp_path / "frozen")

    def change(held: dict[str, bytes]) -> None:
        held["T3/gcd"] += b"\n"
        del held["T5/sieve"]
        held["T1/other"] = b""

    rewritten(folder / "golden.zip", change)
    with pytest.raises(ValueError, match="as it was frozen: T1/other, T3/gcd, T5/sieve$"):
        golden.load_frozen_artifacts(folder)


def test_a_program_that_was_not_frozen_is_named(tmp_path: Path) -> None:
    folder = frozen_in(tmp_path / "frozen")
    listed = (folder / "golden.sha256").read_text().splitlines(keepends=True)
    others = [line for line in listed if not line.endswith("  cases/small/gcd.out\n")]
    (folder / "golden.sha256").write_text("".join(others))
    with pytest.raises(ValueError, match=r"as it was frozen: cases/small/gcd\.out$"):
        golden.load_frozen_artifacts(folder)


def test_changed_counts_are_named(tmp_path: Path) -> None:
    folder = frozen_in(tmp_path / "frozen")
    table = folder / "counts.csv"
    table.write_text(table.read_text().replace("gcd,1", "gcd,2"))
    with pytest.raises(ValueError, match=r"as it was frozen: counts\.csv$"):
        golden.load_frozen_artifacts(folder)


def test_a_damaged_archive_is_an_error_that_names_it(tmp_path: Path) -> None:
    folder = frozen_in(tmp_path / "frozen")
    whole = (FROZEN / "golden.zip").read_bytes()
    with zipfile.ZipFile(FROZEN / "golden.zip") as archive:
        start = archive.getinfo("T4/stack").header_offset
    for at in range(start + 60, start + 900, 120):
        (folder / "golden.zip").write_bytes(whole[:at] + bytes([whole[at] ^ 64]) + whole[at + 1 :])
        golden.load_frozen_artifacts.cache_clear()
        with pytest.raises(ValueError, match=r"golden\.zip: T4/stack cannot be read"):
            golden.load_frozen_artifacts(folder)
    (folder / "golden.zip").write_bytes(whole[:5000])
    with pytest.raises(ValueError, match=r"golden\.zip: its list cannot be read"):
        golden.load_frozen_artifacts(folder)


def test_what_differs_is_named_wherever_it_is() -> None:
    old = golden.load_frozen_artifacts()
    changed = {**old.artifacts, "T2/gcd": b"{}", "T9/new": b""}
    counts = {**old.counts, "sieve": InstructionCounts(plain=1, optimised=1)}
    new = copy.replace(old, artifacts=changed, counts=counts)
    assert golden.find_golden_differences(old, new) == ("T2/gcd", "T9/new", "counts/sieve")
    assert golden.find_golden_differences(old, old) == ()


def test_what_is_written_is_read_and_the_same_each_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        golden.write_golden(golden.load_frozen_artifacts(), tmp_path / name)
    assert golden.load_frozen_artifacts(tmp_path / "one") == golden.load_frozen_artifacts()
    digests = [
        {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
        for folder in (tmp_path / "one", tmp_path / "two")
    ]
    assert digests[0] == digests[1]
    for name in ("golden.sha256", "counts.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (FROZEN / name).read_bytes()
