"""What the command line says of the golden tapes, held against what it said before.

A test that fails here says that a tape of an earlier version is read otherwise, that a table has
another shape, or that a JSON output has other keys. Where that is wanted, write the expected files
again, read the difference, and commit it with its reason:

    STUMBLE_GOLDEN=write .venv/bin/pytest tests/e2e/store/test_golden.py

tests/data/golden/README.md says how the tapes were made.
"""

import hashlib
import json
import os
import re
import shutil
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.practice_shop import Said, Shop

GOLDEN = Path(__file__).resolve().parents[2] / "data" / "golden"
TAPES: dict[str, str] = json.loads((GOLDEN / "tapes.json").read_text())
"""The run that each golden tape is."""
STRUCK = ("fork_digit", "fork_503", "before_sham", "later_digit")
RELATIONS = ("trajectories", "exchanges", "steps", "tool_calls", "messages", "usage",
             "injections", "outcomes", "stages", "stage_cases")  # fmt: skip

LEFT_OUT = {
    "exchanges.tape": "the path of the tape, which names the folder of the store",
}
"""The columns whose values no file expects, each with the reason."""


def folder_of(path: Path) -> Shop:
    return Shop(folder=path, book=path, log=path, hosts=(), task="none")


def expect(name: str, found: object, key: str | None = None) -> None:
    """Compare with an expected file or one entry of it; write it where STUMBLE_GOLDEN=write."""
    path = GOLDEN / name
    if os.environ.get("STUMBLE_GOLDEN") == "write":
        kept = json.loads(path.read_text()) if key and path.exists() else {}
        text = json.dumps({**kept, key: found} if key else found, indent=1, ensure_ascii=False)
        path.write_text(f"{text}\n")
    expected = json.loads(path.read_text())
    assert found == (expected[key] if key else expected)


def answered(said: Said) -> Any:
    """The JSON of a command that went well."""
    assert said.code == 0, said.err
    return said.json


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A folder whose store holds a copy of every golden tape, and the runs of spans.json."""
    folder = tmp_path_factory.mktemp("golden")
    tapes = folder / ".stumble" / "tapes"
    tapes.mkdir(parents=True)
    for name, run in TAPES.items():
        shutil.copyfile(GOLDEN / f"{name}.tape", tapes / f"{run}.tape")
    shop = folder_of(folder)
    assert shop.stumble("import", str(GOLDEN / "spans.json")).code == 0
    return shop


VIEWS = (
    "verdicts",
    "roots",
    "judged_injections",
    "campaign_injections",
    "recovery",
    "telemetry",
    "pipeline_runs",
)

# Tapes


@pytest.mark.parametrize("name", TAPES)
def test_a_tape_is_shown_as_before(tmp_path: Path, name: str) -> None:
    result = folder_of(tmp_path).stumble("show", "--json", str(GOLDEN / f"{name}.tape"))
    expect(f"{name}.show.json", answered(result))


def test_the_exchanges_of_the_tapes_are_shown_as_before(tmp_path: Path) -> None:
    here = folder_of(tmp_path)
    shown = {
        name: here.stumble("show", "--exchanges", str(GOLDEN / f"{name}.tape")).out.splitlines()
        for name in ("http", "stream", "websocket", "mcp_http", "mcp_stdio", "fork_503")
    }
    expect("exchanges.json", shown)


def test_a_cassette_is_imported_as_before(tmp_path: Path) -> None:
    here = folder_of(tmp_path)
    result = here.stumble("import", "--json", str(GOLDEN / "session.yaml"))
    assert [(each["state"], each["exchanges"]) for each in answered(result)] == [("new", 6)]
    expect("json_keys.json", sorted(keys(result.json)), "import")
    tape = f".stumble/tapes/{TAPES['imported']}.tape"
    assert (here.folder / tape).read_bytes() == (GOLDEN / "imported.tape").read_bytes()


@pytest.mark.parametrize(("name", "words"), [("http", ()), ("stream", ("--stream",))])
def test_a_tape_replays_offline(tmp_path: Path, name: str, words: tuple[str, ...]) -> None:
    tape, agent = GOLDEN / f"{name}.tape", (sys.executable, str(GOLDEN / "agent.py"), *words)
    result = folder_of(tmp_path).stumble("replay", "--in-place", str(tape), "--", *agent)
    assert result.code == 0, result.err
    assert result.out.startswith("DONE: refund ref-5048 pays 231.94 GBP for ord-7018")
    assert "23 answered from the tape, 0 upstream, 0 diverged" in result.err


# Verdicts


@pytest.mark.parametrize("name", STRUCK)
def test_a_fork_is_judged_again_as_before(store: Shop, name: str) -> None:
    why = answered(store.stumble("why", "--json", f"{TAPES[name]}/1"))
    expect(f"{name}.why.json", why)


# Tables


@pytest.fixture(scope="module")
def listed(store: Shop) -> dict[str, list[str]]:
    """The names that `stumble sql --list` gives, under each of its headings."""
    result = store.stumble("sql", "--list", env={"COLUMNS": "400"})
    assert result.code == 0, result.err
    names: dict[str, list[str]] = {}
    for line in result.out.splitlines():
        if not line.startswith(" "):
            found = names.setdefault(line.split()[0], [])
        else:
            found += line.split(", ") if "relations" in names else line.split()[:1]
    return {heading: [name.strip() for name in found] for heading, found in names.items()}


def test_questions_and_views_have_their_names(listed: dict[str, list[str]]) -> None:
    expect("sql_names.json", listed)


def test_relations_and_views_have_their_columns(store: Shop, listed: dict[str, list[str]]) -> None:
    query = (
        "select table_name, column_name, data_type from information_schema.columns"
        " order by table_name, ordinal_position"
    )
    columns: dict[str, list[str]] = defaultdict(list)
    for row in answered(store.stumble("sql", "--json", query)):
        columns[row["table_name"]].append(f"{row['column_name']} {row['data_type']}")
    names = listed["relations"] + listed["views"]
    expect("relations.json", {name: columns[name] for name in names})


def test_relations_and_views_have_their_rows(store: Shop) -> None:
    expect("rows.json", summaries(store, RELATIONS + VIEWS))


def summaries(store: Shop, names: tuple[str, ...]) -> dict[str, object]:
    """How many rows each table has, and digests of them all and of the values of each column."""
    query = " union all ".join(
        f"select '{name}' of, to_json(t) told from {name} t" for name in names
    )
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for each in answered(store.stumble("sql", "--json", query)):
        row = json.loads(each["told"])
        kept = {key: row[key] for key in row if f"{each['of']}.{key}" not in LEFT_OUT}
        rows[each["of"]].append(kept)
    return {
        name: {
            "count": len(found),
            "digest": digest(found),
            "columns": {key: digest([row[key] for row in found]) for key in (found or [{}])[0]},
        }
        for name, found in rows.items()
    }


def digest(values: list[Any]) -> str:
    """The same for the same values in any order."""
    texts = sorted(json.dumps(value, sort_keys=True) for value in values)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


# Keys of JSON outputs

TAPE = str(GOLDEN / "http.tape")
AGENT = ("--", sys.executable, str(GOLDEN / "agent.py"))
ASKED: dict[str, tuple[int, tuple[str, ...]]] = {
    "show --tools": (0, ("show", "--json", "--tools", TAPE)),
    "sql": (0, ("sql", "--json", "select * from trajectories")),
    "sql forks": (0, ("sql", "--json", "forks")),
    "report": (0, ("report", "--json")),
    "gate": (5, ("gate", "--json", "--min-recovery", "0.5", "--max-silent", "0.1")),
    "gate --against": (5, ("gate", "--json", "--campaign", "later", "--against", "before",
                           "--margin", "0.2")),
    "compare": (5, ("compare", "--json", "before", "later")),
    "judge": (0, ("judge", "--json", "--calibrate", str(GOLDEN / "finals.jsonl"))),
    "faults": (0, ("faults", "--json")),
    "faults digit": (0, ("faults", "--json", "digit")),
    "scenarios": (0, ("scenarios", "--json")),
    "scenarios lost-ack-on-refund": (0, ("scenarios", "--json", "lost-ack-on-refund")),
    "leaderboard": (0, ("leaderboard", "--json")),
    "doctor": (0, ("doctor", "--json", *AGENT)),
    "replay": (0, ("replay", "--json", "--in-place", TAPE, *AGENT)),
}  # fmt: skip
"""Commands with --json that need no network, and the status that each ends with.

Of `show` and `why` the tests above expect all values.
"""


@pytest.mark.parametrize("name", ASKED)
def test_a_json_output_has_its_keys(store: Shop, tmp_path: Path, name: str) -> None:
    code, words = ASKED[name]
    here = folder_of(tmp_path) if name == "replay" else store  # a replay adds a run to its store
    result = here.stumble(*words)
    assert result.code == code, result.err
    expect("json_keys.json", sorted(keys(result.json)), name)


def test_a_finding_of_scan_has_its_keys(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text(f"password = {'q7Zt' * 6}\n")
    result = folder_of(tmp_path).stumble("scan", "--json", "notes.txt")
    assert (result.code, len(result.json)) == (1, 1), result.err
    expect("json_keys.json", sorted(keys(result.json)), "scan")


@pytest.mark.parametrize("form", ["atif", "otel", "har", "vcr"])
def test_an_exported_tape_has_its_keys(tmp_path: Path, form: str) -> None:
    result = folder_of(tmp_path).stumble("export", "--json", "--to", form, "-o", "out", TAPE)
    text = (tmp_path / "out").read_text()
    match form:
        case "vcr":
            written = yaml.safe_load(text)
        case "otel":
            [written] = [json.loads(line) for line in text.splitlines()]
        case _:
            written = json.loads(text)
    found = {"said": sorted(keys(answered(result))), "written": sorted(keys(written))}
    expect("json_keys.json", found, f"export {form}")


def test_an_exported_store_has_its_rows(store: Shop, tmp_path: Path) -> None:
    result = store.stumble("export", "--json", "--to", "parquet", "-o", str(tmp_path / "out"))
    expect("json_keys.json", answered(result), "export parquet")


def keys(value: object, path: str = "") -> set[str]:
    """The paths of all keys; [] stands for every item of a list."""
    found: set[str] = set()
    if isinstance(value, dict):
        for key, inner in value.items():
            name = re.sub(r"\d{8}T\d{6}-[0-9a-f]{8}", "RUN", str(key))
            found |= {f"{path}.{name}"} | keys(inner, f"{path}.{name}")
    if isinstance(value, list):
        for inner in value:
            found |= keys(inner, f"{path}[]")
    return found
