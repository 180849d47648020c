"""All that was recorded elsewhere goes out again, and Harbor's own validator takes it."""

import json
import subprocess
from pathlib import Path

import pytest

from stumble.cli.numbers.import_command import _format_import_table
from stumble.imports import import_files
from tests.agents import environment
from tests.e2e.store.test_stumble_import import here
from traces.store.trace_store import TraceStore

VALIDATE = Path(__file__).parents[2] / "support" / "validate_atif.py"


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_every_trajectory_of_the_real_data_with_steps_is_valid_for_harbor(
    tmp_path: Path, shared: Path
) -> None:
    store = TraceStore(tmp_path / ".stumble")
    groups = ("cassettes", "coding", "flows", "har", "inspect", "openhands", "otel", "ramp", "tau")
    found = list(
        import_files.import_recordings(
            store, import_files.list_import_files(shared / name for name in groups)
        )
    )
    refused = sorted(each.path.name for each in found if each.state == "refused")
    assert refused == ["corrupted_har__brokenfile.har", "dumpfile-010.mitm", "har_extractor.har"]
    told = "\n".join(_format_import_table(found))
    assert "tau-bench runs: 1 file; 200 trajectories, 1,164 tool calls" in told

    with store.connect() as connection:
        [(coding, steps, resolved)] = connection.execute(
            "select count(*), sum(n_steps), count(*) filter (passed) from trajectories"
            " where source = 'mini-swe' and passed is not null"
        ).fetchall()
        [(whole,)] = connection.execute(
            "select count(distinct trajectory_id) from steps"
        ).fetchall()
        [(returned, failed)] = connection.execute(
            "select count(*), count(*) filter (is_error) from tool_calls"
            " join trajectories using (trajectory_id)"
            " where source = 'mini-swe' and passed is not null"
            " and regexp_matches(result, '^\\s*<returncode>-?\\d+</returncode>')"
        ).fetchall()
    assert (coding, steps, resolved) == (500, 20_163, 371)
    assert (returned, failed) == (18_953, 1_438)

    done = here(tmp_path).stumble("export", "--to", "atif", "-o", "atif", "--json")
    rows = json.loads(done.out)
    assert {row["why"] for row in rows if row["path"] is None} == {"it has no steps"}
    assert sum(row["path"] is not None for row in rows) == whole
    check = subprocess.run(
        [environment("harbor"), VALIDATE, "atif"],
        cwd=tmp_path, capture_output=True, text=True, check=True, timeout=100,
    )  # fmt: skip
    assert json.loads(check.stdout) == {"documents": whole, "errors": {}}


def test_what_is_there_already_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "some.har").write_text("mine")
    result = here(tmp_path).stumble("export", "none", "--to", "har", "-o", "some.har")
    assert result.code == 2
    assert "exists already" in result.err
    (tmp_path / ".stumble").mkdir()
    result = here(tmp_path).stumble("export", "none", "--to", "har", "-o", "other.har")
    assert result.code == 1
    assert "refused none: no such run" in result.err
    assert (tmp_path / "some.har").read_text() == "mine"
    assert not (tmp_path / "other.har").exists()


def test_a_folder_that_cannot_be_made_is_named_and_nothing_half_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    tape = Path(__file__).parents[2] / "data" / "tapes" / "edited.tape"
    done = here(tmp_path).stumble("export", str(tape), "--to", "har", "-o", "file/x.har")
    assert (done.code, "file exists already" in done.out + done.err) == (1, True)
    assert "Traceback" not in done.err
    assert sorted(path.name for path in tmp_path.glob(".*.part")) == []


def test_parquet_of_a_run_that_is_not_there_is_no_empty_folder(tmp_path: Path) -> None:
    (tmp_path / ".stumble").mkdir()
    result = here(tmp_path).stumble("export", "none", "--to", "parquet", "-o", "rows")
    assert result.code == 2
    assert "none: no such run in the store" in result.err
    assert not (tmp_path / "rows").exists()


@pytest.mark.parametrize("form", ["har", "vcr"])
def test_the_edits_of_a_fault_are_left_out_by_name(tmp_path: Path, form: str) -> None:
    tape = Path(__file__).parents[2] / "data" / "tapes" / "edited.tape"
    result = here(tmp_path).stumble("export", str(tape), "--to", form, "-o", "out")
    assert result.code == 1
    assert "left out of out: the edits of exchange 0" in result.err
