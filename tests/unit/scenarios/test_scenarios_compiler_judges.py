"""Tokens and trees are worth what one computes by hand, whatever is lacking or too much."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.pipeline.compiler import golden
from scenarios.pipeline.compiler.scoring import tokens, trees
from scenarios.pipeline.compiler.scoring.execution import strip_target
from scenarios.pipeline.compiler.scoring.sequence_alignment import align_sequences

few = st.lists(st.sampled_from("abc"), max_size=12)


def longest(one: Sequence[str], other: Sequence[str]) -> int:
    """The length of a longest common subsequence, the plain way."""
    if not one or not other:
        return 0
    if one[0] == other[0]:
        return 1 + longest(one[1:], other[1:])
    return max(longest(one[1:], other), longest(one, other[1:]))


@given(few, few)
def test_sequences_are_aligned_as_well_as_can_be(wanted: list[str], got: list[str]) -> None:
    found = list(align_sequences(wanted, got))
    assert [n for n, _ in found if n is not None] == list(range(len(wanted)))
    assert [m for _, m in found if m is not None] == list(range(len(got)))
    same = sum(n is not None and m is not None and wanted[n] == got[m] for n, m in found)
    assert same == longest(wanted, got)


def token(text: str, column: int, **changed: object) -> dict[str, object]:
    place = {"line": 1, "column": column, "start": column == 1, "space": column > 1}
    return {"kind": "identifier", "text": text, **place, **changed}


def lines(*tokens: dict[str, object]) -> bytes:
    return "".join(f"{json.dumps(token)}\n" for token in tokens).encode()


FOUR = [token("a", 1), token("b", 3), token("c", 5), token("d", 7)]


@pytest.mark.parametrize(
    ("got", "score", "strict", "why"),
    [
        (FOUR, 100, 100, ""),
        ([], 0, 0, "token 1: expected identifier 'a' at 1:1 start, got none (0 tokens instead"),
        ([*FOUR[:3], token("d", 7, kind="int")], 85, 85, "token 4: expected identifier 'd'"),
        ([*FOUR[:3], token("d", 8)], 92.5, 92.5, "token 4: "),
        ([*FOUR[:3], token("d", 7, space=False)], 97.5, 97.5, "token 4: "),
        (FOUR[1:], 75, 0, "token 1: "),
        ([*FOUR[:2], FOUR[3]], 75, 0, "token 3: expected identifier 'c' at 1:5 space, got none"),
        ([*FOUR, token("e", 9)], 80, 0, "token 5: expected none, got identifier 'e'"),
    ],
)
def test_tokens_are_worth_their_parts(
    got: list[dict[str, object]], score: float, strict: float, why: str
) -> None:
    judged = tokens.score_tokens(lines(*FOUR), lines(*got))
    assert (judged.score, judged.facts["strict"]) == (score, strict)
    assert judged.why.startswith(why)
    assert judged.result == ("pass" if score >= 60 else "fail")


def node(kind: str, *inner: object, **said: str) -> dict[str, object]:
    return {"kind": kind, **said, **({"inner": list(inner)} if inner else {})}


def literal(value: str, type: str = "int") -> dict[str, object]:
    return node("IntegerLiteral", value=value, type=type)


def listing(*values: str) -> dict[str, object]:
    return node("InitListExpr", *(literal(value) for value in values), type="int[3]")


RETURN, BREAK = node("ReturnStmt", literal("1")), node("BreakStmt")
BODY = node("CompoundStmt", BREAK, RETURN, node("VarDecl", listing("1", "2"), name="v", type="int"))
# Eight nodes: body, break, return with a literal, variable, list, two literals; five have a type.


@pytest.mark.parametrize(
    ("got", "score", "why"),
    [
        (BODY, 100, ""),
        (node("CompoundStmt"), 60 / 8, "/CompoundStmt[0]/BreakStmt: expected BreakStmt, got none"),
        (
            node("CompoundStmt", *BODY["inner"][1:]),  # type: ignore[index]
            60 * 7 / 8 + 40,
            "/CompoundStmt[0]/BreakStmt: expected BreakStmt, got none",
        ),
        (
            node("CompoundStmt", BREAK, node("ReturnStmt", literal("2")), BODY["inner"][2]),  # type: ignore[index]
            60 * 7 / 8 + 40 * 4 / 5,
            "/CompoundStmt[1]/ReturnStmt[0]/IntegerLiteral: expected IntegerLiteral 1 'int', got",
        ),
        (
            node("CompoundStmt", BREAK, node("ReturnStmt", literal("1", "long")), BODY["inner"][2]),  # type: ignore[index]
            60 + 40 * 4 / 5,
            "/CompoundStmt[1]/ReturnStmt[0]/IntegerLiteral: expected IntegerLiteral 1 'int', got",
        ),
        (
            node("CompoundStmt", *BODY["inner"], BREAK, BREAK),  # type: ignore[misc]
            60 * 8 / 10 + 40,
            "/CompoundStmt[3]/BreakStmt: expected none, got BreakStmt",
        ),
    ],
)
def test_trees_are_worth_their_nodes(got: dict[str, object], score: float, why: str) -> None:
    judged = trees.score_tree(json.dumps(BODY).encode(), json.dumps(got).encode())
    assert judged.score == pytest.approx(score)
    assert judged.why.startswith(why)


def test_a_list_of_another_length_has_another_type() -> None:
    three, two = (json.dumps(listing(*values)).encode() for values in (("1", "2", "3"), "12"))
    judged = trees.score_tree(three, two)
    assert judged.score == pytest.approx(60 * 3 / 4 + 40 * 2 / 4)
    assert judged.why.endswith("(2 elements instead of 3)")


@pytest.mark.parametrize(
    "got",
    [
        b"",
        b"\xff",
        b"[" * 100_000,
        b"7",
        b'{"kind":"A","inner":7}',
        b'{"inner":[' * 300 + b"{}" + b"]}" * 300,
        b"1" * 5000,
    ],
)
def test_what_is_no_tree_is_unreadable(got: bytes) -> None:
    judged = trees.score_tree(b'{"kind":"A"}', got)
    assert (judged.result, judged.score) == ("agent_error", 0)
    assert judged.why.startswith("no tree: ")


@pytest.mark.parametrize("got", [b"\xff", b"[" * 100_000, b"7", b"{}\n[]", b'{"kind"'])
def test_what_is_no_list_of_tokens_is_unreadable(got: bytes) -> None:
    judged = tokens.score_tokens(lines(*FOUR), got)
    assert (judged.result, judged.score) == ("agent_error", 0)
    assert judged.why.startswith("no tokens: line ")


def test_much_more_than_there_should_be_is_not_looked_at() -> None:
    many = lines(*FOUR * 100)
    assert tokens.score_tokens(lines(*FOUR), many).score == 0
    wide = json.dumps(node("A", *[BREAK] * 1000)).encode()
    assert trees.score_tree(json.dumps(BODY).encode(), wide).why == "1001 nodes instead of 8"


def test_half_of_a_character_can_be_shown() -> None:
    judged = tokens.score_tokens(lines(*FOUR), lines(token("\ud800", 1)))
    judged.why.encode()


@pytest.mark.parametrize("stage", ["T1", "T2"])
def test_golden_is_full_and_itself_only(stage: str) -> None:
    judge = {"T1": tokens.score_tokens, "T2": trees.score_tree}[stage]
    artifacts = golden.load_golden_slot(stage).artifacts
    one, other = list(artifacts.values())[:2]
    assert judge(one, one).score == 100
    score = judge(one, other).score
    assert score is not None
    assert 0 < score < 100


def test_code_of_another_machine_is_made_neutral() -> None:
    text = (
        b'target datalayout = "e-m:e"\ntarget triple = "x86_64-pc-linux-gnu"\n'
        b"define i32 @main() #0 {\n  ret i32 0\n}\n"
        b'attributes #0 = { nounwind "target-cpu"="x86-64" "target-features"="+cx8,+mmx" }\n'
    )
    assert strip_target(text) == (
        b"\n\ndefine i32 @main() #0 {\n  ret i32 0\n}\nattributes #0 = { nounwind   }\n"
    )


FEATURES = {
    "plain": rb'"target-features"="+m,+c"',
    "escaped": rb'"target\2Dfeatures"="+m,+c"',
    "all escaped": rb'"\74\61\72\67\65\74\2d\66\65\61\74\75\72\65\73"="+m,+c"',
    "with a comment": b'"target-features" ; " = \n = ; "\n "+m,+c"',
    "without a space": rb'"target-cpu"="sifive-u74""target-features"="+c"',
    "behind a word": rb'nosync"target-features"="+c"',
    "other": rb'"tune-cpu"="sifive-u74" "future"="1"',
}


@pytest.mark.parametrize("spelling", FEATURES)
def test_no_attribute_of_a_target_is_left(spelling: str) -> None:
    ir = b'@"a=" = constant [4 x i8] c"=\\22;x" ; "\ndefine i32 @main() %s {\n ret i32 0 }\n'
    kept = strip_target(ir % FEATURES[spelling])
    assert b"+c" not in kept
    assert b"u74" not in kept
    assert kept.startswith(b'@"a=" = constant [4 x i8] c"=\\22;x" ; "\ndefine i32 @main()')
