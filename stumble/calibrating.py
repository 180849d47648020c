"""Labelled finals from a file, and how the reader of claims does on them, as text and as JSON."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from faults.judging.calibration import LABELS, Agreement, Labelled, Rate, agreement, read_row
from faults.judging.claim_types import CLAIMS
from stumble.exits import Wrong


@dataclass(frozen=True, slots=True)
class Calibration:
    """The agreement over a file, over each of its languages, and what was left out."""

    all: Agreement
    languages: Mapping[str, Agreement]
    without_text: int


def calibrate(path: Path) -> Calibration:
    """Read a file of labelled finals; raises Wrong with the line if one of them is none."""
    rows, without_text = [], 0
    for row in _rows(path):
        if row is None:
            without_text += 1
        else:
            rows.append(row)
    if not rows:
        left_out = f": {without_text} rows, none with a text" if without_text else ""
        raise Wrong(f"{path}: no labelled final in it{left_out}")
    languages = sorted({row.language or "unstated" for row in rows})
    return Calibration(
        all=agreement(rows),
        languages={
            each: agreement(row for row in rows if (row.language or "unstated") == each)
            for each in languages
        },
        without_text=without_text,
    )


def _rows(path: Path) -> Iterator[Labelled | None]:
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _row(line, f"{path}, line {number}")
    except OSError as error:
        raise Wrong(f"{path}: {error.strerror}") from error


def _row(line: bytes, where: str) -> Labelled | None:
    try:
        return read_row(json.loads(line.decode("utf-8-sig")))
    except (ValueError, RecursionError) as error:
        raise Wrong(f"{where}: {error or 'too deeply nested'}") from error


def to_dict(found: Calibration) -> dict[str, object]:
    """A calibration as one JSON object."""
    return {
        "without_text": found.without_text,
        "all": _agreement(found.all),
        "languages": {code: _agreement(each) for code, each in found.languages.items()},
    }


def _agreement(found: Agreement) -> dict[str, object]:
    return {
        "rows": found.rows,
        "matrix": {
            label: {claim: found.counts.get((label, claim), 0) for claim in CLAIMS}
            for label in LABELS
        },
        "unknown": _rate(found.unknown),
        "right": _rate(found.right),
        "right_delivered": _rate(found.right_delivered),
        "false_delivered": _rate(found.false_delivered),
        "classes": {
            claim: {
                "precision": _rate(found.precision(claim)),
                "recall": _rate(found.recall(claim)),
            }
            for claim in LABELS
        },
    }


def _rate(rate: Rate) -> dict[str, object]:
    lo, hi = rate.bounds or (None, None)
    return {"k": rate.k, "n": rate.n, "rate": rate.rate, "lo": lo, "hi": hi}


def to_lines(found: Calibration) -> Iterator[str]:
    """A calibration for people."""
    left_out = f" ({found.without_text} left out: no text)" if found.without_text else ""
    yield f"{found.all.rows} labelled finals read{left_out}"
    yield from _matrix(found.all)
    yield from _rates(found.all)
    for claim in LABELS:
        precision, recall = found.all.precision(claim), found.all.recall(claim)
        yield f"  {claim:<15} precision {_shown(precision)}, recall {_shown(recall)}"
    if len(found.languages) > 1:
        for code, each in found.languages.items():
            yield f"language {code}: {each.rows} finals"
            yield from _rates(each)


def _matrix(found: Agreement) -> Iterator[str]:
    width = max(map(len, CLAIMS)) + 1
    yield "label, read as:".ljust(width + 2) + "".join(claim.rjust(width) for claim in CLAIMS)
    for label in LABELS:
        counts = (str(found.counts.get((label, claim), 0)) for claim in CLAIMS)
        yield f"  {label}".ljust(width + 2) + "".join(count.rjust(width) for count in counts)


def _rates(found: Agreement) -> Iterator[str]:
    yield f"  unknown: {_shown(found.unknown)}"
    yield f"  of the decided, the claim is right: {_shown(found.right)}"
    yield f"  of the decided, delivered or not is right: {_shown(found.right_delivered)}"
    yield f"  not delivered, but read as delivered: {_shown(found.false_delivered)}"


def _shown(rate: Rate) -> str:
    if rate.rate is None or rate.bounds is None:
        return "no rows"
    lo, hi = rate.bounds
    return f"{rate.rate:.1%} [{lo:.1%}, {hi:.1%}] ({rate.k} of {rate.n})"
