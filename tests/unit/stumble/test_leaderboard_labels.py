"""The numbers of dots in the chart of cost and score."""

import csv
from itertools import combinations

from stumble.pipeline.forecast import COHORT_FILE
from stumble.pipeline.leaderboard_charts import (
    DOT,
    locate_dot,
    make_label_box,
    overlap,
    place_labels,
)
from stumble.store.filter import ReportRow

NEAR: list[ReportRow] = [
    {"label": str(at), "cost": 0.34 + at / 100, "score": 70.0 + at / 10} for at in range(1, 6)
]


def read_published() -> list[ReportRow]:
    lines = COHORT_FILE.read_text().splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    return [
        {"label": str(at), "cost": float(row["cost_usd"]), "score": float(row["t2"])}
        for at, row in enumerate(rows, 1)
    ]


def test_no_number_covers_another_or_a_dot() -> None:
    for rows in (NEAR, read_published(), NEAR[:1]):
        dots = [locate_dot(row, rows) for row in rows]
        groups = place_labels(rows)
        labels = [
            make_label_box(row, locate_dot(row, rows), offset)
            for offset, group in groups.items()
            for row in group
        ]
        assert len(labels) == len(rows)
        assert not any(overlap(one, other) for one, other in combinations(labels, 2))
        boxes = [(x - DOT / 2, y - DOT / 2, DOT, DOT) for x, y in dots]
        assert not any(overlap(label, box) for label in labels for box in boxes)
