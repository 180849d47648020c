"""The zone of an agent: its TZ, else the system's, by name or by rule."""

from pathlib import Path

import pytest

from recorder.agent.time_zone import find_restored_zone, read_time_zone


@pytest.mark.parametrize(
    ("variable", "zone"),
    [
        ("Asia/Tokyo", "Asia/Tokyo"),
        (":Asia/Tokyo", "Asia/Tokyo"),
        ("/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "CET-1CEST,M3.5.0,M10.5.0/3"),
        ("<+0330>-3:30", "<+0330>-3:30"),
        ("", "UTC"),
        ("/etc/shadow", None),
        ("../../etc/shadow", None),
    ],
)
def test_a_variable_names_the_zone(variable: str, zone: str | None) -> None:
    assert read_time_zone({"TZ": variable}) == zone


def test_the_system_has_a_zone_where_no_variable_does(tmp_path: Path) -> None:
    local = tmp_path / "localtime"
    assert read_time_zone({}, local) == "UTC"
    file = tmp_path / "zoneinfo" / "Asia" / "Tokyo"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"TZif2 and so on\nJST-9\n")
    local.symlink_to(file)
    assert read_time_zone({}, local) == "Asia/Tokyo"
    local.unlink()
    local.write_bytes(file.read_bytes())
    assert read_time_zone({}, local) == "JST-9"


@pytest.mark.parametrize(
    ("recorded", "restored"),
    [("Asia/Tokyo", "Asia/Tokyo"), ("UTC", None), (None, None), ("/etc/shadow", None)],
)
def test_only_another_zone_is_restored(recorded: str | None, restored: str | None) -> None:
    assert find_restored_zone(recorded, {"TZ": "UTC"}) == restored
