"""`stumble judge --calibrate`: a file of labelled finals in, labels against readings out."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from stumble.cli.app import cli

GOOD = json.dumps(
    {"last_messages": ["", "Done: refunded 12.50."], "language": "en",
     "label": {"claim": "delivered"}}
)  # fmt: skip
GERMAN = json.dumps(
    {"last_messages": ["Soll ich fortfahren?"], "language": "de", "label": {"claim": "asks"}}
)
TEXTLESS = json.dumps({"label": {"claim": "none"}})


def run(path: Path, *words: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["judge", "--calibrate", str(path), *words])
    return result.exit_code, result.output


def test_a_file_is_read_without_a_store_or_a_model(tmp_path: Path) -> None:
    path = tmp_path / "finals.jsonl"
    path.write_text(f"{GOOD}\n\n{GERMAN}\n{TEXTLESS}\n")
    result = subprocess.run(
        [sys.executable, "-m", "stumble", "judge", "--calibrate", str(path)],
        capture_output=True, text=True, timeout=60, env={"PATH": "", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "2 labelled finals read (1 left out: no text)" in result.stdout
    assert "unknown: 0.0% [0.0%, 65.8%] (0 of 2)" in result.stdout
    assert "language de: 1 finals" in result.stdout


def test_json_holds_the_same(tmp_path: Path) -> None:
    path = tmp_path / "finals.jsonl"
    path.write_text(f"{GOOD}\n{GERMAN}\n{TEXTLESS}\n")
    code, output = run(path, "--json")
    found = json.loads(output)
    assert code == 0
    assert found["without_text"] == 1
    assert found["all"]["matrix"]["asks"]["asks"] == 1
    assert found["all"]["right"]["rate"] == 1.0
    assert found["languages"]["de"]["classes"]["delivered"]["precision"]["rate"] is None


def test_wrong_readings_are_listed_by_label_reading_and_language(tmp_path: Path) -> None:
    path = tmp_path / "finals.jsonl"
    labels = ("none", "abstained", "delivered")
    wrong = [json.loads(GOOD) | {"label": {"claim": label}} for label in labels]
    path.write_text("\n".join(map(json.dumps, [*wrong, json.loads(GERMAN)])))
    code, output = run(path, "--wrong", "--json")
    assert code == 0
    found = json.loads(output)["wrong"]
    assert [(each["label"], each["read"], each["line"]) for each in found] == [
        ("abstained", "delivered", 2),
        ("none", "delivered", 1),
    ]
    listed = run(path, "--wrong")[1]
    assert "2 of 4 are not read as labelled" in listed
    assert "abstained read as delivered, en, line 2: Done: refunded 12.50." in listed
    assert "line 2" not in run(path)[1]


def test_wrong_readings_need_a_calibration() -> None:
    result = CliRunner().invoke(cli, ["judge", "--llm", "m", "--wrong"])
    assert result.exit_code == 2


def test_a_final_of_a_megabyte_and_an_empty_one_are_read(tmp_path: Path) -> None:
    path = tmp_path / "finals.jsonl"
    long = json.loads(GOOD) | {"last_messages": ["I looked at it. " * 65_000, None]}
    empty = json.loads(GOOD) | {"last_messages": []}
    path.write_text(f"{json.dumps(long)}\n{json.dumps(empty)}\n")
    assert run(path)[0] == 0


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no labelled final in it"),
        (f"{TEXTLESS}\n", "1 rows, none with a text"),
        (f'{GOOD}\n{{"label":\n', "line 2: Expecting value"),
        (f"{GOOD}\n{{}}\n", "line 2: no label.claim"),
        (f"{GOOD}\n[]\n", "line 2: not a JSON object"),
        ('{"label": {"claim": "great"}}\n', "line 1: label.claim is 'great'"),
        (f"{GOOD}\n{'[' * 100_000}\n", "line 2: "),
    ],
)
def test_a_wrong_file_is_told_by_its_line(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "finals.jsonl"
    path.write_text(text)
    code, output = run(path)
    assert (code, why in output) == (2, True), output


def test_bytes_that_are_no_text_and_a_missing_file_are_told(tmp_path: Path) -> None:
    path = tmp_path / "finals.jsonl"
    path.write_bytes(b"\xff\xfe\n")
    assert run(path)[0] == 2
    assert run(tmp_path / "absent.jsonl")[0] == 2
    assert run(tmp_path)[0] == 2


def test_one_of_both_ways_is_asked_for(tmp_path: Path) -> None:
    assert CliRunner().invoke(cli, ["judge"]).exit_code == 2
    path = tmp_path / "finals.jsonl"
    path.write_text(GOOD)
    assert run(path, "--llm", "any/model")[0] == 2
