"""Checks of a self-test: one pure function per property, from the evidence to a figure.

Without measurements (no answer, no gap or no request to check) a check fails.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from replay.player import REFUSED_STATUS
from scenarios.practice import fixed_pace_server
from scenarios.practice.agents.logging_agent import ExchangeNote
from stumble.errors import ExitCode
from stumble.runs.isolation import UNSEEN_TRAFFIC_NOTE
from stumble.runs.replay_report import compute_replay_exit_code
from stumble.selftest.runner import LiveRuns, OfflineRuns, SelftestEvidence
from traces.dialects import openai_chat

MAX_GAP_ERROR = fixed_pace_server.PAUSE / 2
"""Largest error of a gap in seconds; large, since the machine may be busy."""
STRAY_REQUESTS = 5
"""Number of a stray agent's six requests that are not recorded."""


class SelftestCheck(Struct, frozen=True, kw_only=True):
    """A property, whether it holds (None if it cannot be checked), and the figures."""

    name: str
    holds: bool | None
    figure: str


def run_selftest_checks(evidence: SelftestEvidence) -> Iterator[SelftestCheck]:
    """Run all checks."""
    live, still = evidence.live, evidence.still
    yield check_strict_replay(live, still)
    yield check_same_bytes(live, still)
    yield check_same_pace(live.whisper.notes, still.whisper.notes)
    yield check_no_false_recovery(live, still, evidence.judged)
    yield check_no_guess(still)
    yield check_no_secret(evidence)
    yield check_fault_delivered(live)
    yield check_sham_changes_nothing(live)
    yield check_isolation(still)


def check_strict_replay(live: LiveRuns, still: OfflineRuns) -> SelftestCheck:
    """Check that recordings replay completely while every server is stopped."""
    runs = (still.errand, still.whisper)
    requested = len(live.errand.notes) + len(live.whisper.notes)
    on_tape = len(live.errand.tape.exchanges) + len(live.whisper.tape.exchanges)
    answers = [x for run in runs for x in run.tape.exchanges if x.answered_by == "recorded"]
    answered, tls = len(answers), sum(x.request.url.startswith("https:") for x in answers)
    divergences = sum(len(run.played.diverged) + len(run.played.unasked) for run in runs)
    all_ok = all(compute_replay_exit_code(run.played, struck=True) is ExitCode.OK for run in runs)
    return SelftestCheck(
        name="strict replay",
        holds=0 < tls < requested == on_tape == answered
        and not divergences
        and not still.came
        and all_ok,
        figure=f"{answered} of {requested} requests answered from the tape, {tls} over TLS, "
        f"{still.came} connections upstream, {divergences} diverged",
    )


def check_same_bytes(live: LiveRuns, still: OfflineRuns) -> SelftestCheck:
    """Check that the agent gets equal statuses and bodies, and prints the same."""
    recorded, replayed = _collect_agent_answers(live), _collect_agent_answers(still)
    same = sum(answer == other for answer, other in zip(recorded, replayed, strict=False))
    printed = live.errand.printed == still.errand.printed != b""
    return SelftestCheck(
        name="same bytes",
        holds=0 < same == len(recorded) == len(replayed) and printed,
        figure=f"{same} of {len(recorded)} answers equal, "
        f"{sum(len(body) for _, body in replayed):,} bytes",
    )


def _collect_agent_answers(runs: LiveRuns | OfflineRuns) -> list[tuple[int, bytes]]:
    """Return status and body of all answers but the one with a secret, which is redacted."""
    notes = (*runs.errand.notes, *runs.whisper.notes[:1])
    return [(note.status, note.body) for note in notes]


def check_same_pace(live: Sequence[ExchangeNote], still: Sequence[ExchangeNote]) -> SelftestCheck:
    """Check that chunks of the first answer have the recorded gaps with --speed 1."""
    recorded, replayed = _measure_chunk_gaps(live), _measure_chunk_gaps(still)
    largest_error = max(
        (abs(gap - other) for gap, other in zip(recorded, replayed, strict=False)), default=0.0
    )
    return SelftestCheck(
        name="same pace",
        holds=len(recorded) == len(replayed) == len(fixed_pace_server.PIECES) - 1
        and largest_error < MAX_GAP_ERROR,
        figure=f"{len(replayed)} gaps of {fixed_pace_server.PAUSE * 1000:.0f} ms between chunks, "
        "off by "
        f"{largest_error * 1000:.1f} ms at most, {MAX_GAP_ERROR * 1000:.0f} ms are allowed",
    )


def _measure_chunk_gaps(notes: Sequence[ExchangeNote]) -> list[float]:
    pieces = notes[0].pieces if notes else ()
    return [after - before for (before, _), (after, _) in pairwise(pieces)]


def check_no_false_recovery(live: LiveRuns, still: OfflineRuns, judged: int) -> SelftestCheck:
    """Check that a replay with tools down diverges and never reaches the recorded answer."""
    runs, recorded_answer = (live.down, still.broken), live.errand.printed
    diverged = sum(
        compute_replay_exit_code(run.played, struck=True) is ExitCode.DIVERGED for run in runs
    )
    reached = sum(recorded_answer in run.printed for run in runs)
    live_requests = sum(len(run.heard) for run in runs)
    return SelftestCheck(
        name="no false recovery",
        holds=recorded_answer != b""
        and diverged == len(runs)
        and not reached
        and not live_requests
        and not judged,
        figure=f"{diverged} of {len(runs)} replays with tools down end in exit 3, "
        f"{reached} reached the recorded answer, {live_requests} requests to a live model, "
        f"{judged} verdicts",
    )


def check_no_guess(still: OfflineRuns) -> SelftestCheck:
    """Check that requests that were not recorded are refused."""
    notes, diverged = still.stray.notes, len(still.stray.played.diverged)
    refused = sum(note.status == REFUSED_STATUS for note in notes)
    guessed = max(0, sum(note.status == 200 for note in notes) - 1)
    exits_diverged = compute_replay_exit_code(still.stray.played, struck=True) is ExitCode.DIVERGED
    return SelftestCheck(
        name="no guess",
        holds=refused == STRAY_REQUESTS == diverged and not guessed and exits_diverged,
        figure=f"{refused} of {STRAY_REQUESTS} requests that were not recorded are refused, "
        f"{guessed} guessed",
    )


def check_no_secret(evidence: SelftestEvidence) -> SelftestCheck:
    """Check that no written file contains a secret that was transmitted."""
    copies, crossed = sum(evidence.copies.values()), evidence.crossed
    where = "".join(f"; {n} in {path.name}" for path, n in evidence.copies.items() if n)
    return SelftestCheck(
        name="no secret written",
        holds=all(crossed) and len(evidence.copies) > 0 and not copies,
        figure=f"{copies} copies in {len(evidence.copies)} files of {len(crossed)} secrets that "
        f"crossed the wire {sum(crossed)} times{where}",
    )


def check_fault_delivered(live: LiveRuns) -> SelftestCheck:
    """Check that an injected value is in the agent's next model request and every later one."""
    fired = sum(run.played.fired for run in live.struck)
    injections = [(run, each) for run in live.struck for each in run.tape.injections]
    changed = sum(each.mutated != each.original for _, each in injections)
    later_requests = [(body, each) for run, each in injections for body in run.heard]
    delivered = sum(
        _find_result_in_request(body, each.call_id) == each.mutated for body, each in later_requests
    )
    planned = len(live.struck)
    return SelftestCheck(
        name="fault delivered",
        holds=fired == changed == len(injections) == planned
        and 0 < delivered == len(later_requests),
        figure=f"{fired} of {planned} faults fired, {delivered} of {len(later_requests)} later "
        "model requests hold what was put there, byte for byte",
    )


def _find_result_in_request(body: bytes, call_id: str | None) -> bytes | None:
    """Return the result of a call in a model request, or None."""
    results = openai_chat.make_dialect_reader()(body).results
    return next((each.text.encode() for each in results if each.call_id == call_id), None)


def check_sham_changes_nothing(live: LiveRuns) -> SelftestCheck:
    """Check that a fork with a sham has the recorded requests and answers, live ones too."""
    recorded, fork = live.errand, live.sham
    pairs = list(zip(recorded.notes, fork.notes, strict=False))
    changed = sum((a.sent, a.status, a.body) != (b.sent, b.status, b.body) for a, b in pairs)
    changed += sum(a != b for a, b in zip(recorded.heard[::-1], fork.heard[::-1], strict=False))
    complete = len(recorded.notes) == len(fork.notes) and not fork.played.diverged
    return SelftestCheck(
        name="sham changes nothing",
        holds=fork.played.fired == 1 and complete and not changed and len(fork.heard) > 0,
        figure=f"{changed} of {len(pairs)} exchanges changed, {len(fork.heard)} of them live model "
        "requests",
    )


def check_isolation(still: OfflineRuns) -> SelftestCheck:
    """Check that an agent that bypasses the proxy gets no answer, if isolation is available."""
    if still.slip is None:
        figure = f"not isolated: {still.open}; {UNSEEN_TRAFFIC_NOTE}"
        return SelftestCheck(name="isolation", holds=None, figure=figure)
    requests = len(still.slip.notes)
    blocked = sum(still.slip.played.attempts.values())
    answered = sum(note.status != 0 for note in still.slip.notes) + still.slipped
    return SelftestCheck(
        name="isolation",
        holds=0 < requests <= blocked and not answered,
        figure=f"{requests} request past the proxy, {answered} got through, {blocked} seen",
    )
