"""The language page: each sentence is shown by programs or a test, each program shows sentences."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from scenarios.pipeline.compiler import golden
from scenarios.pipeline.compiler.program_cases import list_sample_cases
from tests.support.language_sentences import (
    OPEN_QUESTIONS,
    WITNESSES,
    SentenceWitness,
    split_page,
)

PAGE = (Path(golden.__file__).parent / "language.md").read_text()
TESTS = Path(__file__).parents[2]
KEYWORDS = {"const", "int", "void", "if", "else", "while", "for", "break", "continue", "return"}
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
STAGE_OF = {"TOKENS": "T1", "TREE": "T2", "IR": "T3", "BETTER": "T4"}


@cache
def texts(kind: str) -> dict[str, str]:
    """The text of each program in one form."""
    cases = (*golden.list_graded_cases(), *list_sample_cases())
    if kind in STAGE_OF:
        return {
            case.name: golden.make_golden_artifact(STAGE_OF[kind], case.source).decode()
            for case in cases
        }
    sources = {case.name: case.source.decode() for case in cases}
    if kind == "SOURCE":
        return sources
    return {name: COMMENT.sub(" ", source) for name, source in sources.items()}


@cache
def list_tests() -> frozenset[str]:
    found = (path.read_text() for path in TESTS.rglob("test_scenarios_compiler_*.py"))
    return frozenset(name for text in found for name in re.findall(r"^def (test_\w+)", text, re.M))


def find_programs(witness: SentenceWitness) -> set[str]:
    """The programs in which a pattern occurs."""
    return {name for name, text in texts(witness.kind).items() if re.search(witness.shown, text)}


def test_each_sentence_of_the_page_has_what_shows_it_and_nothing_else_has() -> None:
    sentences = split_page(PAGE)
    shown = [each.begins for each in WITNESSES]
    assert len(sentences) == len(shown)
    for sentence, begins in zip(sentences, shown, strict=True):
        assert sentence.startswith(begins)


@pytest.mark.many(12)
@pytest.mark.parametrize("witness", WITNESSES, ids=lambda each: each.begins)
def test_a_sentence_is_shown(witness: SentenceWitness) -> None:
    match witness.kind:
        case "TEST":
            assert witness.shown in list_tests()
        case "NEVER":
            assert find_programs(witness) == set()
        case _:
            assert find_programs(witness)


def test_nothing_is_left_to_a_guess() -> None:
    assert OPEN_QUESTIONS == ()


def test_every_sign_of_the_page_is_in_a_program_and_no_other() -> None:
    named = dict(re.findall(r"\| `([^`\s]+)` ([a-z_]+) (?=\|)", PAGE.replace(" | `", " | | `")))
    named = {sign.replace("\\|", "|"): name for sign, name in named.items()}
    tokens = [json.loads(line) for text in texts("TOKENS").values() for line in text.splitlines()]
    words = {"identifier", "numeric_constant", "char_constant"}
    found = {each["text"]: each["kind"] for each in tokens if each["kind"] not in words}
    keywords = {text for text, kind in found.items() if text == kind}
    assert keywords == KEYWORDS
    assert {text: kind for text, kind in found.items() if text not in keywords} == named


def test_each_rule_of_the_grammar_is_used() -> None:
    """Each kind of node that the page lists is in the tree of a program."""
    rows = re.findall(r"^\| ([A-Z]\w+(?:, \w+)*) \|", PAGE, re.MULTILINE)
    listed = {kind for row in rows for kind in row.split(", ") if not re.fullmatch(r"T\d", kind)}
    found = set(re.findall(r'"kind":"(\w+)"', " ".join(texts("TREE").values())))
    assert len(listed) > 20
    assert found == listed


def test_a_program_hides_an_outer_name() -> None:
    def hides(node: dict[str, Any], outer: frozenset[str]) -> bool:
        names: set[str] = set()
        for each in (child for child in node.get("inner", []) if child):
            if each["kind"] in ("VarDecl", "ParmVarDecl") and each["name"] in outer:
                return True
            names |= {each["name"]} if each["kind"] in ("VarDecl", "ParmVarDecl") else set()
            scope = names if each["kind"] == "DeclStmt" or node["kind"] == "DeclStmt" else set()
            names |= {x["name"] for x in each.get("inner", []) if x and each["kind"] == "DeclStmt"}
            if hides(each, outer | (names if each["kind"] != "DeclStmt" else scope - names)):
                return True
        return False

    assert any(hides(json.loads(tree), frozenset()) for tree in texts("TREE").values())


def test_a_function_calls_itself_and_one_is_declared_before() -> None:
    functions = [
        each
        for tree in texts("TREE").values()
        for each in json.loads(tree)["inner"]
        if each["kind"] == "FunctionDecl"
    ]
    bodies = [(each["name"], json.dumps(each.get("inner", []))) for each in functions]
    assert any(f'"DeclRefExpr", "name": "{name}"' in body for name, body in bodies)
    assert any('"CompoundStmt"' not in body for _, body in bodies)


def test_golden_keeps_the_calling_convention() -> None:
    for case in (*golden.list_graded_cases(), *list_sample_cases()):
        text = golden.make_golden_artifact("T5", case.source).decode()
        assert re.search(r"\.globl\s+main\b", text)
        steps = re.findall(r"addi\s+sp, sp, (-?\d+)", text)
        assert [step for step in steps if int(step) % 16] == []
        for body in re.split(r"^\w+:.*$", text, flags=re.MULTILINE):
            changed = set(
                re.findall(r"^\s+(?:addw?i?|li|mv|l[bhwd]u?|sext\.w)\s+(s\d+),", body, re.M)
            )
            kept = set(re.findall(r"^\s+sd\s+(s\d+),", body, re.M))
            assert changed <= kept
