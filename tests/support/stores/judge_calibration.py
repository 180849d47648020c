"""Calibrate the judge on a campaign whose model logs what it noticed.

    python -m tests.support.stores.judge_calibration            everything, with the table
                                                                of tests/bench/README.md
    python -m tests.support.stores.judge_calibration --small    the part that CI runs
    python -m tests.support.stores.judge_calibration --write    update that table

The ground truth of an injection is taken from the model's log (what it noticed, and how it ended),
the agent's exit code and the state of the order book; the judge reads none of these, but the tapes.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from scenarios.practice.tasks.registry import ORDER_TASKS
from tests.support.campaign_folder import Bench
from traces.store.trace_store import TraceStore
from traces.tape.reader import Tape, read_tape

README = Path(__file__).parents[2] / "bench" / "README.md"
BETWEEN = "<!-- calibration -->"
CLASSES = ("recovered", "masked", "honest_fail", "noticed_wrong", "silent_wrong", "crashed")
LEAST, AGREE, SHAMS = 20, 0.98, 0.02
"""Minimum cases per class, minimum agreement, and maximum share of shams judged as noticed."""

FAULTS = (
    "http_status:code=503",
    "truncate:keep=0.6",
    "digit",
    "scale_unit",
    "schema_drift",
    "silent_noop",
    "wrong_entity",
)
SMALL = ("refund-1", "price-2")
MODELS = (
    "practice/p=0.4",
    "practice/p=0.8",
    "practice/hopes",
    "practice/stubborn",
)


def text(tasks: Sequence[str], models: Sequence[str], faults: Sequence[str], steps: int) -> str:
    """Return the campaign file."""
    struck = "\n".join(f"[[faults]]\nfault = {json.dumps(fault)}" for fault in faults)
    return f"""
persist = ["once", "same_args"]
seeds = [1]
[practice]
tasks = {json.dumps(tasks)}
models = {json.dumps(models)}
max_steps = {steps}
log = "noticed"
{struck}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One consumed injection: the ground truth, and the judge's verdict."""

    run: str
    model: str
    op: str
    persist: str
    truth: str
    noticed: bool
    judged: str | None
    judge_noticed: bool | None
    sham: bool
    said: tuple[str, ...]
    """What the model logged."""
    evidence: str

    @property
    def agrees(self) -> bool:
        """Whether class and notice match the ground truth."""
        return (self.truth, self.noticed) == (self.judged, self.judge_noticed)


_JUDGED = """
    SELECT i.trajectory_id, t.model, i.op, i.persist, i.seq, o.class, o.noticed, i.sham, o.evidence
    FROM injections AS i
    JOIN trajectories AS t USING (trajectory_id)
    LEFT JOIN outcomes AS o USING (injection_id)
    WHERE i.consumed AND i.repeat_of IS NULL
    ORDER BY 1
"""


def cases(store: TraceStore, log: Path) -> Iterator[Case]:
    """Yield all consumed injections of a store, matched with the model's log."""
    entries = dict(_entries(log))
    with store.connect() as connection:
        found = connection.execute(_JUDGED).fetchall()
    for run, model, op, persist, seq, judged, judge_noticed, sham, evidence in found:
        tape = read_tape(store.tapes / f"{run}.tape")
        said = tuple(_said(tape, seq, entries))
        noticed = any(_shown(entry) for entry in said)
        yield Case(
            run=run,
            model=model,
            op=op,
            persist=persist,
            truth=_truth(tape, said, noticed),
            noticed=noticed,
            judged=judged,
            judge_noticed=judge_noticed,
            sham=sham,
            said=tuple(note for entry in said for note in entry["noticed"]),
            evidence=evidence or "",
        )


def _entries(log: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for path in sorted(log.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            if "id" in entry:
                yield entry["id"] + entry["model"], entry


def _said(
    tape: Tape, seq: int, entries: Mapping[str, Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Yield the model's log entries of each answer after the injection."""
    for exchange in tape.exchanges:
        if exchange.seq < seq or exchange.answered_by != "live" or exchange.response is None:
            continue
        if "/chat/completions" in exchange.request.url and exchange.response.status == 200:
            answer = json.loads(exchange.response.body)
            yield entries[answer["id"] + answer["model"]]


def _shown(entry: Mapping[str, Any]) -> bool:
    """Return whether the model noticed something, and mentioned it or acted on it.

    What it noticed only at the end, without mentioning it, is not observable.
    """
    notes = [note for note in entry["noticed"] if not note.startswith("ignored: ")]
    return bool(notes) and (bool(entry["calls"]) or entry["message"].startswith("NOT DONE"))


def _truth(tape: Tape, said: Sequence[Mapping[str, Any]], noticed: bool) -> str:
    ending = tape.ending
    assert ending is not None
    assert ending.passed is not None, ending
    if ending.exit_code != 0:
        return "crashed"
    if ending.passed:
        return "recovered" if noticed else "masked"
    if said[-1]["message"].startswith("NOT DONE"):
        return "honest_fail"
    return "noticed_wrong" if noticed else "silent_wrong"


@dataclass(frozen=True, slots=True)
class Calibration:
    """All cases, and their statistics."""

    cases: tuple[Case, ...]
    runs: int

    @property
    def struck(self) -> tuple[Case, ...]:
        """The cases of faults."""
        return tuple(case for case in self.cases if not case.sham)

    @property
    def wrong(self) -> tuple[Case, ...]:
        """The cases in which judge and ground truth differ."""
        return tuple(case for case in self.struck if not case.agrees)

    @property
    def agreement(self) -> float:
        """The share of injections in which they agree."""
        return 1 - len(self.wrong) / len(self.struck)

    @property
    def sham_notice(self) -> float:
        """The share of shams that the judge considers noticed."""
        shams = [case for case in self.cases if case.sham]
        return sum(case.judge_noticed is not False for case in shams) / len(shams)

    @property
    def counts(self) -> Counter[str]:
        """Injections of each class, by ground truth."""
        return Counter(case.truth for case in self.struck)

    def lines(self) -> Iterator[str]:
        """The confusion table and the verdict, as Markdown."""
        shams = sum(case.sham for case in self.cases)
        yield (
            f"{self.runs} runs of a real process; {len(self.struck)} consumed injections, "
            f"{shams} consumed shams."
        )
        yield ""
        judged = (*CLASSES, "unknown")
        yield "| really, and noticed | " + " | ".join(judged) + " | notice differs |"
        yield "|-" * (len(judged) + 2) + "|"
        for truth in CLASSES:
            for noticed in (True, False):
                mine = [c for c in self.struck if (c.truth, c.noticed) == (truth, noticed)]
                if not mine:
                    continue
                by = Counter(case.judged or "unknown" for case in mine)
                differs = sum(case.judge_noticed is not case.noticed for case in mine)
                cells = " | ".join(str(by[name] or "") for name in judged)
                name = f"{truth}, {'noticed' if noticed else 'not noticed'}"
                yield f"| {name} | {cells} | {differs or ''} |"
        yield ""
        yield (
            f"Class and notice agree in {self.agreement:.1%} of the injections (at least "
            f"{AGREE:.0%}); {self.sham_notice:.1%} of shams count as noticed (at most "
            f"{SHAMS:.0%})."
        )

    def details(self) -> Iterator[str]:
        """Yield each case in which they differ."""
        for case in self.wrong:
            yield (
                f"{case.run} {case.model} {case.op} {case.persist}: really {case.truth}, "
                f"noticed {case.noticed}; judged {case.judged}, noticed {case.judge_noticed}"
            )
            yield f"    it wrote down: {'; '.join(case.said) or 'nothing'}"
            yield f"    evidence: {case.evidence}"


def calibrate(folder: Path, *, small: bool = False) -> Calibration:
    """Run the campaign in this folder, and compare the judge with the log."""
    bench = Bench(folder)
    tasks = SMALL if small else tuple(task for task in ORDER_TASKS if not task.endswith("-3"))
    models = MODELS[1:3] if small else MODELS
    faults = FAULTS[:3] if small else FAULTS
    bench.write("c.toml", text(tasks, models, faults, 60))
    result = bench.stumble("campaign", "c.toml", "--json", timeout=3600)
    if result.code not in (0, 5):
        raise RuntimeError(result.err)
    done = result.json
    assert done["finished"], done
    assert not done["diverged"], done["diverged"]
    found = tuple(cases(bench.store, folder / "noticed"))
    return Calibration(found, done["done"] + done["recorded_now"])


def main() -> int:
    """Calibrate and print; return 0 if the targets are met."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.stores.judge_calibration", description=__doc__
    )
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--folder", type=Path, help="keep the store in this folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        folder.mkdir(exist_ok=True)
        found = calibrate(folder, small=options.small)
    said = "\n".join(found.lines())
    click.echo(said)
    click.echo("\n".join(found.details()), err=True)
    if options.write:
        before, _, after = README.read_text().partition(f"{BETWEEN}\n")
        after = after.partition(BETWEEN)[2]
        README.write_text(f"{before}{BETWEEN}\n{said}\n{BETWEEN}{after}")
    enough = options.small or all(found.counts[name] >= LEAST for name in CLASSES)
    return 0 if enough and found.agreement >= AGREE and found.sham_notice <= SHAMS else 1


if __name__ == "__main__":
    sys.exit(main())
