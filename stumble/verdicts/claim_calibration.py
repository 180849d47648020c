"""Calibration of the claim reader on a file of labelled final answers, as text and as JSON."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from faults.judging.claims.calibration import (
    LABELS,
    LabelAgreement,
    LabelledFinal,
    RateInterval,
    measure_label_agreement,
    read_labelled_final,
)
from faults.judging.claims.types import CLAIMS
from stumble.errors import UsageError
from traces.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ClaimCalibration:
    """Agreement over a file and per language, and the number of rows without text."""

    all: LabelAgreement
    languages: Mapping[str, LabelAgreement]
    without_text: int


def calibrate_claims(path: Path) -> ClaimCalibration:
    """Read a file of labelled finals. Raises UsageError with the line if one is invalid."""
    rows, without_text = [], 0
    for row in _read_labelled_rows(path):
        if row is None:
            without_text += 1
        else:
            rows.append(row)
    if not rows:
        left_out = f": {without_text} rows, none with a text" if without_text else ""
        raise UsageError(f"{path}: no labelled final in it{left_out}")
    languages = sorted({row.language or "unstated" for row in rows})
    return ClaimCalibration(
        all=measure_label_agreement(rows),
        languages={
            each: measure_label_agreement(
                row for row in rows if (row.language or "unstated") == each
            )
            for each in languages
        },
        without_text=without_text,
    )


def _read_labelled_rows(path: Path) -> Iterator[LabelledFinal | None]:
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _parse_labelled_row(line, f"{path}, line {number}")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error


def _parse_labelled_row(line: bytes, where: str) -> LabelledFinal | None:
    try:
        return read_labelled_final(json.loads(line.decode("utf-8-sig")))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: {error or 'too deeply nested'}") from error


def calibration_to_dict(found: ClaimCalibration) -> dict[str, object]:
    """Return a calibration as plain data."""
    return {
        "without_text": found.without_text,
        "all": _agreement_to_dict(found.all),
        "languages": {code: _agreement_to_dict(each) for code, each in found.languages.items()},
    }


def _agreement_to_dict(found: LabelAgreement) -> dict[str, object]:
    return {
        "rows": found.row_count,
        "matrix": {
            label: {claim: found.counts.get((label, claim), 0) for claim in CLAIMS}
            for label in LABELS
        },
        "unknown": _rate_to_dict(found.unknown_rate),
        "right": _rate_to_dict(found.accuracy),
        "right_delivered": _rate_to_dict(found.delivered_accuracy),
        "false_delivered": _rate_to_dict(found.false_delivered_rate),
        "classes": {
            claim: {
                "precision": _rate_to_dict(found.precision(claim)),
                "recall": _rate_to_dict(found.recall(claim)),
            }
            for claim in LABELS
        },
    }


def _rate_to_dict(rate: RateInterval) -> dict[str, object]:
    lo, hi = rate.bounds or (None, None)
    return {"k": rate.k, "n": rate.n, "rate": rate.rate, "lo": lo, "hi": hi}


def calibration_to_lines(found: ClaimCalibration) -> Iterator[str]:
    """Format a calibration as lines."""
    left_out = f" ({found.without_text} left out: no text)" if found.without_text else ""
    yield f"{found.all.row_count} labelled finals read{left_out}"
    yield from _format_label_matrix(found.all)
    yield from _format_agreement_rates(found.all)
    for claim in LABELS:
        precision, recall = found.all.precision(claim), found.all.recall(claim)
        yield (
            f"  {claim:<15} precision {_format_agreement_rate(precision)}, "
            f"recall {_format_agreement_rate(recall)}"
        )
    if len(found.languages) > 1:
        for code, each in found.languages.items():
            yield f"language {code}: {each.row_count} finals"
            yield from _format_agreement_rates(each)


def _format_label_matrix(found: LabelAgreement) -> Iterator[str]:
    width = max(map(len, CLAIMS)) + 1
    yield "label, read as:".ljust(width + 2) + "".join(claim.rjust(width) for claim in CLAIMS)
    for label in LABELS:
        counts = (str(found.counts.get((label, claim), 0)) for claim in CLAIMS)
        yield f"  {label}".ljust(width + 2) + "".join(count.rjust(width) for count in counts)


def _format_agreement_rates(found: LabelAgreement) -> Iterator[str]:
    yield f"  unknown: {_format_agreement_rate(found.unknown_rate)}"
    yield f"  of the decided, the claim is right: {_format_agreement_rate(found.accuracy)}"
    yield (
        f"  of the decided, delivered or not is right: "
        f"{_format_agreement_rate(found.delivered_accuracy)}"
    )
    yield (
        f"  not delivered, but read as delivered: "
        f"{_format_agreement_rate(found.false_delivered_rate)}"
    )


def _format_agreement_rate(rate: RateInterval) -> str:
    if rate.rate is None or rate.bounds is None:
        return "no rows"
    lo, hi = rate.bounds
    return f"{rate.rate:.1%} [{lo:.1%}, {hi:.1%}] ({rate.k} of {rate.n})"
