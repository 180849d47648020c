"""Calibration of the claim reader on a file of labelled final answers, as text and as JSON."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from faults.judging.claims.calibration import (
    LABELS,
    LabelAgreement,
    LabelledFinal,
    RateInterval,
    measure_label_agreement,
    read_labelled_claims,
    read_labelled_final,
)
from faults.judging.claims.types import CLAIMS
from stumble.control_characters import escape_controls
from stumble.errors import UsageError
from traces.model import Claim

SHOWN_CHARS = 160
"""Maximum characters of a message in a line."""


class ClaimCalibration(Struct, frozen=True):
    """Agreement over a file and per language, and the number of rows without text."""

    all: LabelAgreement
    languages: Mapping[str, LabelAgreement]
    without_text: int
    wrong: tuple["WrongReading", ...] = ()
    """The rows that are read as another claim, or as unknown: by label, reading and language."""


class WrongReading(Struct, frozen=True, order=True):
    """A row whose reading is not its label."""

    label: Claim
    read: Claim
    language: str
    line: int
    message: str
    """The last message, its spaces folded."""


def calibrate_claims(path: Path) -> ClaimCalibration:
    """Read a file of labelled finals. Raises UsageError with the line if one is invalid."""
    rows, lines, without_text = [], [], 0
    for number, row in _read_labelled_rows(path):
        if row is None:
            without_text += 1
        else:
            rows.append(row)
            lines.append(number)
    if not rows:
        left_out = f": {without_text} rows, none with a text" if without_text else ""
        raise UsageError(f"{path}: no labelled final in it{left_out}")
    read = list(read_labelled_claims(rows))
    languages = sorted({_get_language(row) for row in rows})
    return ClaimCalibration(
        all=measure_label_agreement(read),
        languages={
            each: measure_label_agreement(pair for pair in read if _get_language(pair[0]) == each)
            for each in languages
        },
        without_text=without_text,
        wrong=tuple(
            sorted(
                _make_wrong_reading(row, claim, line)
                for (row, claim), line in zip(read, lines, strict=True)
                if row.claim != claim
            )
        ),
    )


def _get_language(row: LabelledFinal) -> str:
    return row.language or "unstated"


def _make_wrong_reading(row: LabelledFinal, claim: Claim, line: int) -> WrongReading:
    message = next((each for each in reversed(row.final.messages) if each.strip()), "")
    return WrongReading(row.claim, claim, _get_language(row), line, " ".join(message.split()))


def _read_labelled_rows(path: Path) -> Iterator[tuple[int, LabelledFinal | None]]:
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, _parse_labelled_row(line, f"{path}, line {number}")
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


def wrong_readings_to_dicts(found: ClaimCalibration) -> list[dict[str, object]]:
    """Return the rows whose reading is not their label as plain data."""
    return [
        {
            "line": each.line,
            "label": each.label,
            "read": each.read,
            "language": each.language,
            "message": each.message,
        }
        for each in found.wrong
    ]


def wrong_readings_to_lines(found: ClaimCalibration) -> Iterator[str]:
    """Format the rows whose reading is not their label, by label, reading and language."""
    yield f"{len(found.wrong)} of {found.all.row_count} are not read as labelled"
    for each in found.wrong:
        message = escape_controls(each.message)
        short = message if len(message) <= SHOWN_CHARS else f"{message[:SHOWN_CHARS]}..."
        yield f"  {each.label} read as {each.read}, {each.language}, line {each.line}: {short}"


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
