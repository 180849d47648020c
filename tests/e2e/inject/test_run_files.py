"""What a run changed in its copy of the workspace, from a fork to `stumble why`."""

from pathlib import Path

from tests.e2e.inject.test_stumble_continuing import room
from tests.support.practice_shop import shop

RIGHT = "sh -c 'grep -q \"stock 233511\" {workspace}/stock.txt'"


def test_why_names_the_files_that_a_run_wrote_and_its_twin_wrote_otherwise(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "room"
    folder.mkdir()
    with shop(folder) as opened:
        place = room(opened, "work-stock")
        options = ("--at", "model-boundary", "--nth", "2")
        world = ("--reset", "true {workspace}", "--verify", RIGHT)
        forked = place.fork(*options, *world, "--seed", "7", "--json")
        assert forked.code == 0, forked.err
        (folder / "stock.txt").write_text("an edit since, which no run made\n")
        [row] = place.sql("select injection_id from injections")
        why = opened.stumble("why", row["injection_id"]).out.splitlines()
        assert "  files     added stock.txt (+1 -0); the clean twin otherwise" in why
        files = opened.stumble("why", "--json", row["injection_id"]).json["files"]
        added = {"path": "stock.txt", "status": "added", "note": None, "added": 1, "removed": 0}
        assert list(files.values()) == [[added], [added]]
