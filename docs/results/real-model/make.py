"""Write the tables and the figure of the study from the recordings (*.stumble) beside this file.

python docs/results/real-model/make.py [FOLDER]                  everything, from all recordings
python docs/results/real-model/make.py FOLDER --rows rows.csv    tables and figure, from the rows
python docs/results/real-model/make.py FOLDER --part t0-none     the rows of one part
"""

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
import duckdb
from figure import draw_rates

from traces.store.sql import build_sql_macros

HERE = Path(__file__).resolve().parent
TABLES = ("rates", "differences")
ANSWERS = (0, 1, 5)
"""Exit codes of a gate that has an answer: PASS, FAIL, INCONCLUSIVE."""


def main() -> None:
    """Make what the arguments ask for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path, default=HERE)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--part", default="*")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    if asked.rows is None:
        packs = sorted(HERE.glob(f"{asked.part}.stumble"))
        make_rows(packs, asked.folder, with_answers=asked.part == "*")
    if asked.part == "*":
        make_tables(asked.rows or asked.folder / "rows.csv", asked.folder)


def make_rows(packs: Sequence[Path], folder: Path, *, with_answers: bool) -> None:
    """Write rows.csv, and answers.csv of the sealed analyses, by a store that is thrown away."""
    with tempfile.TemporaryDirectory() as home:
        run_stumble(home, "unpack", *map(str, packs))
        query = (HERE / "rows.sql").read_text()
        (folder / "rows.csv").write_text(run_stumble(home, "sql", "--format", "csv", "--", query))
        if with_answers:
            write_csv(folder / "answers.csv", list(list_answers(packs, home)))


def run_stumble(home: str, *words: str) -> str:
    """Return what a command prints, with a store in `home`."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("STUMBLE")}
    done = subprocess.run(
        [sys.executable, "-m", "stumble", *words],
        env=env | {"HOME": home, "STUMBLE_STORE": f"{home}/store"},
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in ANSWERS:
        raise SystemExit(f"stumble {words[0]}: {done.stderr}")
    return done.stdout


def list_answers(packs: Sequence[Path], home: str) -> Iterator[Mapping[str, object]]:
    """Yield the answer of each part that was sealed against another one.

    A gate needs the plan, which a store has after `campaign`: no run is left to do.
    """
    for file in (*HERE.glob("*.toml"), *HERE.glob("*.seal.json"), *HERE.glob("*.verdicts.csv")):
        shutil.copy(file, home)
    for pack in packs:
        sealed = json.loads(pack.with_suffix(".seal.json").read_text())
        if sealed["analysis"]["against"] is None:
            continue
        run_stumble(home, "campaign", f"{sealed['campaign']}.toml", "--jobs", "1")
        words = ("gate", "--campaign", sealed["campaign"], "--require-seal", "--json")
        found = json.loads(run_stumble(home, *words))
        [check] = found["checks"]
        now = check["by_today"]
        click.echo(
            f"{sealed['campaign']}: judge {check['judge']}, as sealed: {check['answer']}"
            + (f"; judge {now['judge']} of today: {now['answer']}" if now else "")
        )
        yield {
            "part": sealed["campaign"],
            "against": sealed["analysis"]["against"],
            "margin": check["margin"],
            "answer": check["answer"],
            "rate": check["candidate"]["rate"],
            "rate_against": check["baseline"]["rate"],
            **{key: check[key] for key in ("difference", "lo", "hi", "cells", "known")},
            "reasons": "; ".join(check["reasons"]),
        }


def make_tables(rows: Path, folder: Path) -> None:
    """Write the tables and the figure of the rows."""
    with duckdb.connect() as connection:
        connection.execute(build_sql_macros())
        connection.execute(
            "CREATE TABLE runs AS FROM read_csv($1, types = {'temperature': 'VARCHAR'})",
            [str(rows)],
        )
        for name in TABLES:
            answer = connection.execute((HERE / f"{name}.sql").read_text())
            columns = [column[0] for column in answer.description or ()]
            table = [dict(zip(columns, row, strict=True)) for row in answer.fetchall()]
            write_csv(folder / f"{name}.csv", table)
    with (folder / "rates.csv").open(newline="") as file:
        figure = draw_rates(list(csv.DictReader(file)))
    (folder / "rates.svg").write_text("\n".join(figure) + "\n")


def write_csv(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write rows of the same columns; None is an empty field."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
