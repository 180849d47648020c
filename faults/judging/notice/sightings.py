"""Sightings in one run that an agent noticed, before the comparison with clean twins.

Actions (N1 to N4: it repeated the call, changed it, used another tool, or checked; N9: it adapted)
and messages or reasoning (N5 to N7). Each sighting has a key: the same key in a clean twin is the
agent's normal behaviour.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from faults.judging.claims.claim_verdict import ClaimVerdict
from faults.judging.claims.clause_kinds import detect_languages
from faults.judging.claims.sentences import split_clauses
from faults.judging.identifiers import find_identifiers, is_specific_token
from faults.judging.injected_change import InjectedChange
from faults.judging.post_injection import RunContinuation, render_turn_text
from faults.judging.taint.sinks import make_call_key
from faults.judging.trouble_words import (
    find_named_anchor,
    find_trouble_word,
    remove_quoted_values,
    split_sentences,
)
from faults.judging.value_tokens import extract_tokens, find_json_leaves, mask_values
from faults.targeting.read_or_write import classify_tool_side
from traces.conversation.derived_steps import ToolUse

type SignalCode = Literal["N1", "N2", "N3", "N4", "N5", "N6", "N7", "N8", "N9"]
type EquivalentTools = Mapping[str, tuple[str, ...]]
"""Tools that return the same information as a tool, as declared by the user."""


class NoticeSighting(Struct, frozen=True, kw_only=True):
    """One sign in one run."""

    code: SignalCode
    key: object
    step: int
    quote: str
    hard: bool = True


def find_act_sightings(
    change: InjectedChange,
    after: RunContinuation,
    calls: Sequence[ToolUse],
    equivalent: EquivalentTools,
) -> Iterator[NoticeSighting]:
    """Yield N1 to N4 among these calls."""
    if after.use is None:
        return
    for other in calls:
        if sighting := _classify_act(change, after, after.use, other, equivalent):
            yield sighting
    yield from _find_rewrites(change, [use for use in after.calls if use.tool != after.use.tool])


def _find_rewrites(change: InjectedChange, calls: Iterable[ToolUse]) -> Iterator[NoticeSighting]:
    """Yield the writes that repeat one of the wrong value, on the same thing, with another."""
    wrong: list[ToolUse] = []
    for use in calls:
        if classify_tool_side(use.tool) != "write":
            continue
        if change.introduced_tokens & extract_tokens(use.arguments):
            wrong.append(use)
        elif any(_is_same_subject(each, use) for each in wrong):
            yield NoticeSighting(code="N2", key=use.tool, step=use.step, quote=_quote_call(use))


def _quote_call(use: ToolUse) -> str:
    return f"{use.tool}({use.arguments})"


def _is_same_subject(one: ToolUse, other: ToolUse) -> bool:
    """Return whether two calls of a tool name the same thing."""
    shared = find_identifiers(one.arguments) & find_identifiers(other.arguments)
    return one.tool == other.tool and bool(shared)


def _classify_act(
    change: InjectedChange,
    after: RunContinuation,
    use: ToolUse,
    other: ToolUse,
    equivalent: EquivalentTools,
) -> NoticeSighting | None:
    """Return the sighting that a later call is, relative to the target call; None if it is none."""
    quote = _quote_call(other)
    if make_call_key(other) == make_call_key(use):
        return NoticeSighting(code="N1", key="", step=other.step, quote=quote)
    # A call that uses the wrong value follows it.
    if change.introduced_tokens & extract_tokens(other.arguments):
        return None
    shared = find_identifiers(use.arguments) & find_identifiers(other.arguments)
    if other.tool == use.tool:
        hard = change.injection.family != "V"
        sighting = NoticeSighting(code="N2", key="", step=other.step, quote=quote, hard=hard)
        return sighting if shared else None
    if classify_tool_side(other.tool) == "write":
        return None
    if (shared and other.tool in equivalent.get(use.tool, ())) or _is_truth_shown(
        change, after, other
    ):
        return NoticeSighting(code="N3", key=make_call_key(other), step=other.step, quote=quote)
    if not shared or (classify_tool_side(other.tool) is None and not change.is_unreadable):
        return None
    hard = classify_tool_side(use.tool) != "read" or change.is_unreadable
    return NoticeSighting(
        code="N4", key=make_call_key(other), step=other.step, quote=quote, hard=hard
    )


def _is_truth_shown(change: InjectedChange, after: RunContinuation, other: ToolUse) -> bool:
    """Return whether another tool's result on the same thing contains the replaced value."""
    use = after.use
    if use is None or other.result is None or not change.replaced_tokens:
        return False
    tokens = extract_tokens(other.result)
    restored = {atom for atom in change.replaced_tokens & tokens if is_specific_token(atom)}
    subject = find_identifiers(use.arguments)
    return bool(restored - after.prior_tokens) and bool(
        subject & (tokens | find_identifiers(other.arguments))
    )


def find_remark_sightings(
    change: InjectedChange, after: RunContinuation, twins: Sequence[RunContinuation]
) -> Iterator[NoticeSighting]:
    """Yield N5 and N6 in the window and the last answer: hard if tied to the injection.

    Reasoning counts as messages do, and so does text written with a tool that no twin uses: a note
    to a person. A sentence that a twin also has, whatever its values, does not count.
    """
    usual = frozenset(form for twin in twins for form in twin.sentence_counts)
    steady = len(twins) > 1 and len({frozenset(twin.sentence_counts) for twin in twins}) == 1
    steady = steady and all(map(_is_foreign_run, twins))
    for turn in dict.fromkeys((*after.reaction_turns, *after.final_turns)):
        yield from _find_trouble_remarks(
            change, after, render_turn_text(turn), turn.number, usual, steady=steady
        )
        yield from _find_joint_mention(change, after, render_turn_text(turn), turn.number)
    called = {use.tool for twin in twins for use in twin.calls}
    for use in after.reaction_calls:
        if use.tool not in called:
            text = "\n".join(
                leaf.value for leaf in find_json_leaves(use.arguments) if " " in leaf.value
            )
            yield from _find_trouble_remarks(change, after, text, use.step, usual, steady=False)
            yield from _find_joint_mention(change, after, text, use.step)


def _find_trouble_remarks(
    change: InjectedChange,
    after: RunContinuation,
    text: str,
    step: int,
    usual: frozenset[str],
    *,
    steady: bool,
) -> Iterator[NoticeSighting]:
    for clause in split_clauses(text):
        sentence = clause.text
        word = find_trouble_word(remove_quoted_values(sentence, change.value_texts))
        anchor = is_anchored_sentence(change, after, sentence)
        if word is None and steady and anchor and is_foreign_sentence(clause.folded):
            # No list covers every language, but the twins never make this statement.
            word = "another sentence"
        if word is not None and mask_values(sentence) not in usual:
            hard = anchor or change.is_failure
            yield NoticeSighting(code="N5", key=word, step=step, quote=sentence, hard=hard)


def _is_foreign_run(run: RunContinuation) -> bool:
    """Return whether a run uses an unsupported language; only there new sentences count."""
    return any(
        is_foreign_sentence(clause.folded)
        for turn in run.turns
        for clause in split_clauses(render_turn_text(turn))
    )


def is_foreign_sentence(sentence: str) -> bool:
    """Return whether a sentence is in a language without known trouble words."""
    known = [language.code for language in detect_languages(sentence)]
    return "en" not in known if known else not sentence.isascii()


def is_anchored_sentence(change: InjectedChange, after: RunContinuation, sentence: str) -> bool:
    """Return whether a sentence names the tool, a field, or a value specific to the injection."""
    if find_named_anchor(sentence, change.anchor_words):
        return True
    values = change.linking_tokens & extract_tokens(sentence)
    return bool(values) and bool(values - after.prior_tokens)


def _find_joint_mention(
    change: InjectedChange, after: RunContinuation, text: str, step: int
) -> Iterator[NoticeSighting]:
    """Yield a text that names the true and the wrong value together."""
    if not change.introduced_tokens or change.injection.family not in ("S", "V"):
        return
    tokens = extract_tokens(text)
    for was, now in change.changed_leaves:
        old, new = (
            extract_tokens(was.value) - extract_tokens(now.value),
            extract_tokens(now.value) - extract_tokens(was.value),
        )
        wanted = {atom for atom in new & tokens if is_specific_token(atom)} - after.prior_tokens
        if wanted and any(is_specific_token(atom) for atom in old & tokens):
            quote = next((s for s in split_sentences(text) if wanted & extract_tokens(s)), text)
            yield NoticeSighting(code="N6", key=was.path, step=step, quote=quote.strip())
            return


def find_failure_report(
    change: InjectedChange, after: RunContinuation, claim: ClaimVerdict
) -> Iterator[NoticeSighting]:
    """Yield N7: the last answer says not done, refuses or asks, and no twin's does.

    Hard if the call had visibly failed, or the statement names the tool, a field or a value.
    """
    if claim.success is not False or not claim.differs or not after.final_turns:
        return
    hard = change.is_failure or any(
        is_anchored_sentence(change, after, statement) for statement in claim.said
    )
    step = after.final_turns[-1].number
    yield NoticeSighting(code="N7", key="", step=step, quote=claim.evidence, hard=hard)


def find_adaptation(
    change: InjectedChange, after: RunContinuation, twins: Sequence[RunContinuation]
) -> Iterator[NoticeSighting]:
    """Yield N9: a value that had moved to another name or form was used as all twins use it.

    An agent that uses it has noticed the move or handles both forms; both are desired.
    """
    if change.injection.op != "schema_drift" or not twins:
        return
    moved = frozenset(filter(is_specific_token, change.moved_tokens)) - after.prior_tokens
    used = frozenset.intersection(
        *(frozenset().union(*(sink.tokens for sink in twin.sinks)) for twin in twins)
    )
    for sink in after.sinks:
        if shared := sorted(moved & used & sink.tokens):
            quote = f"{sink.slot[0]} uses {shared[0][2:]}, which had moved"
            yield NoticeSighting(code="N9", key="", step=sink.step, quote=quote)
            return
