"""Train the reader of claims on files of labelled finals, and measure it on sources left out.

    python -m faults.judging.claims.training FILE.jsonl ... [--out WEIGHTS.json]

Prints the agreement on each source, read with weights that were trained on all other sources (the
rules may have been written with any of them in sight), and writes the weights trained on all.

Multinomial logistic regression with an L2 penalty, by gradient descent with Nesterov's momentum and
restarts (O'Donoghue and Candes, 2015). A row weighs less the more rows its source and its label
have. A feature has to be in several sources, so that names and values of one are no evidence.
"""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from faults.judging.claims.agreed_claim import agree_on_claim
from faults.judging.claims.calibration import LabelAgreement, LabelledFinal, read_labelled_final
from faults.judging.claims.end_features import extract_end_features
from faults.judging.claims.final_claim import read_claim
from faults.judging.claims.trained_reader import TRAINED_CLAIMS, WEIGHTS_FILE, TrainedWeights
from faults.judging.claims.types import Claim

type Matrix = NDArray[np.float64]

MIN_SOURCES = {"fact": 3, "kind": 3}
MIN_SOURCES_OF_WORDS = 7
MAX_SHARE = 0.97
"""Share of all rows above which a feature says nothing."""
SCALES = {"fact": 1.0, "kind": 1.0, "tool": 0.6}
WORD_SCALE = 0.7
"""A group with a smaller scale is penalized more."""
PENALTY = 5.0
LABEL_POWER, SOURCE_POWER = 0.3, 0.5
MAX_ITERATIONS = 150
TOLERANCE = 1e-3


class TrainingRow(Struct, frozen=True):
    """A labelled final with its source and its features."""

    source: str
    labelled: LabelledFinal
    features: frozenset[str]


def read_training_rows(paths: Iterable[Path]) -> list[TrainingRow]:
    """Read files of labelled finals; runs that occur twice in a source count once."""
    rows: dict[tuple[str, str], TrainingRow] = {}
    for path in paths:
        for line in path.read_text("utf-8").splitlines():
            document = json.loads(line)
            labelled = read_labelled_final(document)
            if labelled is None:
                continue
            source = _name_source(document.get("source"))
            key = source, repr((labelled.final.messages, labelled.final.tools))
            rows[key] = TrainingRow(source, labelled, extract_end_features(labelled.final))
    return list(rows.values())


def _name_source(value: object) -> str:
    return str(value.get("repo")) if isinstance(value, dict) else str(value)


def train_weights(rows: Sequence[TrainingRow]) -> TrainedWeights:
    """Return the weights of the least penalized loss on these rows."""
    names = _select_features(rows)
    scales = np.array([SCALES.get(name.partition(":")[0], WORD_SCALE) for name in names])
    inputs = _build_inputs(rows, names) * scales
    labels = np.array([TRAINED_CLAIMS.index(row.labelled.claim) for row in rows])
    fitted = _minimize_loss(inputs, labels, _weigh_rows(rows))
    table = np.round(fitted[:-1] * scales[:, None], 3)
    return TrainedWeights(
        tuple(np.round(fitted[-1], 3).tolist()),
        {name: tuple(row.tolist()) for name, row in zip(names, table, strict=True)},
    )


def _select_features(rows: Sequence[TrainingRow]) -> list[str]:
    sources, counts = defaultdict(set), Counter[str]()
    for row in rows:
        counts.update(row.features)
        for feature in row.features:
            sources[feature].add(row.source)
    return sorted(
        name
        for name, found in sources.items()
        if len(found) >= MIN_SOURCES.get(name.partition(":")[0], MIN_SOURCES_OF_WORDS)
        and counts[name] < MAX_SHARE * len(rows)
    )


def _build_inputs(rows: Sequence[TrainingRow], names: Sequence[str]) -> Matrix:
    index = {name: column for column, name in enumerate(names)}
    inputs = np.zeros((len(rows), len(names)))
    for number, row in enumerate(rows):
        inputs[number, [index[each] for each in row.features if each in index]] = 1.0
    return inputs


def _weigh_rows(rows: Sequence[TrainingRow]) -> Matrix:
    labels = Counter(row.labelled.claim for row in rows)
    sources = Counter(row.source for row in rows)
    weights = np.array(
        [
            labels[row.labelled.claim] ** -LABEL_POWER * sources[row.source] ** -SOURCE_POWER
            for row in rows
        ]
    )
    return np.asarray(weights * len(rows) / weights.sum())


def _minimize_loss(inputs: Matrix, labels: NDArray[np.int_], weights: Matrix) -> Matrix:
    """Return a row of weights for each feature; the last row is the bias."""
    inputs = np.hstack([inputs, np.ones((len(inputs), 1))])
    targets = np.eye(len(TRAINED_CLAIMS))[labels]
    penalty = np.full((inputs.shape[1], 1), PENALTY)
    penalty[-1] = 1e-3
    step = 1 / (np.linalg.norm(inputs * np.sqrt(weights)[:, None], 2) ** 2 / 2 + PENALTY)
    fitted = ahead = np.zeros((inputs.shape[1], len(TRAINED_CLAIMS)))
    momentum = 1.0
    for _ in range(MAX_ITERATIONS):
        errors = (_softmax(inputs @ ahead) - targets) * weights[:, None]
        gradient = inputs.T @ errors + penalty * ahead
        moved = ahead - step * gradient
        if np.abs(gradient).max() < TOLERANCE:
            break
        if (gradient * (moved - fitted)).sum() > 0:
            momentum = 1.0
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = moved + (momentum - 1) / following * (moved - fitted)
        fitted, momentum = moved, following
    return fitted


def _softmax(sums: Matrix) -> Matrix:
    powers = np.exp(sums - sums.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def read_left_out_sources(
    rows: Sequence[TrainingRow],
) -> Iterator[tuple[TrainingRow, dict[Claim, float]]]:
    """Read each row with weights trained on all sources but its own."""
    for source in sorted({row.source for row in rows}):
        weights = train_weights([row for row in rows if row.source != source])
        for row in rows:
            if row.source == source:
                yield row, weights.read_features(row.features)


def list_reliability(
    read: Iterable[tuple[TrainingRow, Mapping[Claim, float]]],
) -> Iterator[tuple[float, int, int]]:
    """Yield, per tenth of the greatest probability: its lower end, the rows, and those right."""
    bins: dict[int, list[bool]] = defaultdict(list)
    for row, shares in read:
        likely = max(shares, key=lambda claim: shares[claim])
        bins[min(9, int(10 * shares[likely]))].append(likely == row.labelled.claim)
    for tenth, hits in sorted(bins.items()):
        yield tenth / 10, len(hits), sum(hits)


def write_weights(weights: TrainedWeights, path: Path) -> None:
    """Write the weights as JSON, one feature a line."""
    lines = [
        f"  {json.dumps(name, ensure_ascii=False)}: {json.dumps(row)}"
        for name, row in weights.features.items()
    ]
    body = ",\n".join(lines)
    path.write_text(
        f'{{"bias": {json.dumps(weights.bias)},\n"features": {{\n{body}\n}}}}\n',
        "utf-8",
    )


def _format_agreement(name: str, found: LabelAgreement) -> str:
    rates = found.unknown_rate, found.accuracy, found.false_delivered_rate
    columns = (f"{rate.k:4} of {rate.n:4}" for rate in rates)
    shares = ("" if rate.rate is None else f"{rate.rate:5.0%}" for rate in rates)
    return f"{name:<42} unknown, right, false delivered: " + ", ".join(
        f"{column} {share}" for column, share in zip(columns, shares, strict=True)
    )


def main(arguments: Sequence[str]) -> None:
    """Measure on sources left out, then train on all and write the weights."""
    out, paths = Path(__file__).with_name(WEIGHTS_FILE), list(arguments)
    if "--out" in paths:
        at = paths.index("--out")
        out = Path(paths[at + 1])
        del paths[at : at + 2]
    rows = read_training_rows(map(Path, paths))
    sys.stdout.writelines(f"{line}\n" for line in _report_left_out_sources(rows))
    write_weights(train_weights(rows), out)
    sys.stdout.write(f"{len(rows)} finals: {out}\n")


def _report_left_out_sources(rows: Sequence[TrainingRow]) -> Iterator[str]:
    left_out = list(read_left_out_sources(rows))
    counts: dict[str, Counter[tuple[Claim, Claim]]] = defaultdict(Counter)
    for row, shares in left_out:
        agreed = agree_on_claim(read_claim(row.labelled.final), shares)
        counts[row.source][row.labelled.claim, agreed.claim] += 1
    for source, found in sorted(counts.items()):
        yield _format_agreement(source, LabelAgreement(found))
    yield _format_agreement("all", LabelAgreement(sum(counts.values(), Counter())))
    for lower, count, hits in list_reliability(left_out):
        yield f"  trained reader alone, probability from {lower:.1f}: {hits} of {count} right"


if __name__ == "__main__":
    main(sys.argv[1:])
