"""What a self-test proves: one function per property, from the evidence to a figure.

Each is pure. What was not measured proves nothing: with no answer, no gap or no request to look
at, a property does not hold.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from replay.player import REFUSED
from scenarios.practice import teller
from stumble.exits import Exits
from stumble.rehearsal import Run
from stumble.replayed import exit_code
from stumble.selftest import Evidence, Live, Still
from stumble.stagecraft import UNSEEN
from traces.dialects import openai_chat

LATE = teller.PAUSE / 2
"""Seconds by which a gap may be off: much, since the machine may be busy with other work."""
STRAYS = 5
"""How many of a stray agent's six requests the recording does not hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """What was to hold, whether it does, and by what figure; None where it cannot be tried."""

    name: str
    holds: bool | None
    figure: str


def properties(evidence: Evidence) -> Iterator[Property]:
    """All of them."""
    live, still = evidence.live, evidence.still
    yield strict(live, still)
    yield same_bytes(live, still)
    yield same_pace(live, still)
    yield no_false_recovery(live, still, evidence.judged)
    yield no_guess(still)
    yield no_secret(evidence)
    yield fault_delivered(live)
    yield sham_changes_nothing(live)
    yield isolation(still)


def strict(live: Live, still: Still) -> Property:
    """A recording replays whole while every server is stopped."""
    runs = (still.errand, still.whisper)
    asked = len(live.errand.notes) + len(live.whisper.notes)
    held = len(live.errand.tape.exchanges) + len(live.whisper.tape.exchanges)
    played = [x for run in runs for x in run.tape.exchanges if x.answered_by == "recorded"]
    answered, tls = len(played), sum(x.request.url.startswith("https:") for x in played)
    left = sum(len(run.played.diverged) + len(run.played.unasked) for run in runs)
    whole = all(exit_code(run.played, struck=True) is Exits.OK for run in runs)
    return Property(
        name="strict replay",
        holds=0 < tls < asked == held == answered and not left and not still.came and whole,
        figure=f"{answered} of {asked} requests answered from the tape, {tls} over TLS, "
        f"{still.came} connections upstream, {left} diverged",
    )


def same_bytes(live: Live, still: Still) -> Property:
    """The agent gets the same statuses and bodies, and says the same in the end."""
    was, now = _answers(live), _answers(still)
    same = sum(one == other for one, other in zip(was, now, strict=False))
    printed = live.errand.printed == still.errand.printed != b""
    return Property(
        name="same bytes",
        holds=0 < same == len(was) == len(now) and printed,
        figure=f"{same} of {len(was)} answers equal, {sum(len(body) for _, body in now):,} bytes",
    )


def _answers(runs: Live | Still) -> list[tuple[int, bytes]]:
    """All but the one with a secret, which no tape may hold."""
    notes = (*runs.errand.notes, *runs.whisper.notes[:1])
    return [(note.status, note.body) for note in notes]


def same_pace(live: Live, still: Still) -> Property:
    """With --speed 1 the chunks come as far apart as they did."""
    was, now = _gaps(live.whisper), _gaps(still.whisper)
    off = max((abs(one - other) for one, other in zip(was, now, strict=False)), default=0.0)
    return Property(
        name="same pace",
        holds=len(was) == len(now) == len(teller.PIECES) - 1 and off < LATE,
        figure=f"{len(now)} gaps of {teller.PAUSE * 1000:.0f} ms between chunks, off by "
        f"{off * 1000:.1f} ms at most, {LATE * 1000:.0f} ms are allowed",
    )


def _gaps(run: Run) -> list[float]:
    pieces = run.notes[0].pieces if run.notes else ()
    return [after - before for (before, _), (after, _) in pairwise(pieces)]


def no_false_recovery(live: Live, still: Still, judged: int) -> Property:
    """With tools that are down a replay diverges, and never reaches the recorded good answer."""
    runs, good = (live.down, still.broken), live.errand.printed
    left = sum(exit_code(run.played, struck=True) is Exits.DIVERGED for run in runs)
    reached = sum(good in run.printed for run in runs)
    asked = sum(len(run.heard) for run in runs)
    return Property(
        name="no false recovery",
        holds=good != b"" and left == len(runs) and not reached and not asked and not judged,
        figure=f"{left} of {len(runs)} replays with tools down end in exit 3, {reached} reached "
        f"the recorded answer, {asked} requests to a live model, {judged} verdicts",
    )


def no_guess(still: Still) -> Property:
    """What a recording does not hold is refused."""
    notes, diverged = still.stray.notes, len(still.stray.played.diverged)
    refused = sum(note.status == REFUSED for note in notes)
    guessed = max(0, sum(note.status == 200 for note in notes) - 1)
    left = exit_code(still.stray.played, struck=True) is Exits.DIVERGED
    return Property(
        name="no guess",
        holds=refused == STRAYS == diverged and not guessed and left,
        figure=f"{refused} of {STRAYS} requests that were not recorded are refused, "
        f"{guessed} guessed",
    )


def no_secret(evidence: Evidence) -> Property:
    """No file that we write holds a secret that crossed the wire."""
    copies, crossed = sum(evidence.copies.values()), evidence.crossed
    where = "".join(f"; {n} in {path.name}" for path, n in evidence.copies.items() if n)
    return Property(
        name="no secret written",
        holds=all(crossed) and len(evidence.copies) > 0 and not copies,
        figure=f"{copies} copies in {len(evidence.copies)} files of {len(crossed)} secrets that "
        f"crossed the wire {sum(crossed)} times{where}",
    )


def fault_delivered(live: Live) -> Property:
    """What a fault put there is in the agent's next model request and in every later one."""
    fired = sum(run.played.fired for run in live.struck)
    strikes = [(run, each) for run in live.struck for each in run.tape.injections]
    changed = sum(each.mutated != each.original for _, each in strikes)
    heard = [(body, each) for run, each in strikes for body in run.heard]
    held = sum(_told(body, each.call_id) == each.mutated for body, each in heard)
    planned = len(live.struck)
    return Property(
        name="fault delivered",
        holds=fired == changed == len(strikes) == planned and 0 < held == len(heard),
        figure=f"{fired} of {planned} faults fired, {held} of {len(heard)} later model requests "
        "hold what was put there, byte for byte",
    )


def _told(body: bytes, call_id: str | None) -> bytes | None:
    """What a model request says that a call returned."""
    told = (each.text for each in openai_chat.results(body) if each.call_id == call_id)
    return next((text.encode() for text in told), None)


def sham_changes_nothing(live: Live) -> Property:
    """A fork that is struck by nothing asks and gets what was recorded, also where it is live."""
    was, now = live.errand, live.sham
    pairs = list(zip(was.notes, now.notes, strict=False))
    other = sum((a.sent, a.status, a.body) != (b.sent, b.status, b.body) for a, b in pairs)
    other += sum(a != b for a, b in zip(was.heard[::-1], now.heard[::-1], strict=False))
    whole = len(was.notes) == len(now.notes) and not now.played.diverged
    return Property(
        name="sham changes nothing",
        holds=now.played.fired == 1 and whole and not other and len(now.heard) > 0,
        figure=f"{other} of {len(pairs)} exchanges changed, {len(now.heard)} of them live model "
        "requests",
    )


def isolation(still: Still) -> Property:
    """An agent that asks past the proxy gets nothing, where this machine can see to that."""
    if still.slip is None:
        figure = f"not isolated: {still.open}; {UNSEEN}"
        return Property(name="isolation", holds=None, figure=figure)
    asked = len(still.slip.notes)
    seen = sum(still.slip.played.attempts.values())
    got = sum(note.status != 0 for note in still.slip.notes) + still.slipped
    return Property(
        name="isolation",
        holds=0 < asked <= seen and not got,
        figure=f"{asked} request past the proxy, {got} got through, {seen} seen",
    )
