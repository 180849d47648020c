"""How many worlds a campaign has, and what its commands and hosts are in each of them."""

from pathlib import Path

import pytest

from scenarios.toml_reader import ScenarioError
from scenarios.world import CommandWorld
from stumble.campaigns.environment import count_worlds
from stumble.campaigns.spec import Campaign, fingerprint_surroundings, parse_campaign
from stumble.campaigns.worker_plan import check_ray_campaign
from stumble.errors import UsageError
from stumble.runs.environment.worlds import WorldCommands, name_world
from traces.store.trace_store import TraceStore

PRACTICE: dict[str, object] = {"tasks": ["refund-1"], "models": ["practice/naive"]}


def asked(tmp_path: Path, world: dict[str, object], **more: object) -> Campaign:
    tape = tmp_path / "a.tape"
    tape.touch()
    table: dict[str, object] = {"traces": [str(tape)], "world": world}
    return parse_campaign(table | more, tmp_path / "c.toml")


def test_one_world_serves_one_run_at_a_time(tmp_path: Path) -> None:
    assert count_worlds(asked(tmp_path, {"reset": "true"}), TraceStore(tmp_path / "s")) == 1


def test_several_worlds_are_told_apart_by_slot_and_port(tmp_path: Path) -> None:
    world: dict[str, object] = {"reset": "true {port}", "instances": 3, "port": 8901}
    found = asked(tmp_path, world, hosts={"shop": "127.0.0.1:{port}", "model": "127.0.0.1:80"})
    assert count_worlds(found, TraceStore(tmp_path / "s")) == 3
    assert found.hosts_in_slot(2) == {"shop": ("127.0.0.1", 8903), "model": ("127.0.0.1", 80)}
    made = [
        WorldCommands("true {port}", "cat {slot}").make_world(filled=found.placeholder_values(n))
        for n in range(2)
    ]
    first, second = made
    assert isinstance(first, CommandWorld)
    assert isinstance(second, CommandWorld)
    assert (first.reset_command, second.verify_command) == (("true", "8901"), ("cat", "1"))
    assert first.digest == second.digest, "what judges is the same in both"
    assert name_world(first, tmp_path) != name_world(second, tmp_path)


def test_a_verifier_alone_judges_the_copy_of_each_run(tmp_path: Path) -> None:
    found = asked(tmp_path, {"verify": "./check"})
    assert (found.reset, found.verify) == ("true {workspace}", "./check")
    with pytest.raises(ScenarioError, match="needs reset, or copies"):
        asked(tmp_path, {"verify": "./check"}, in_place=True)


def test_a_scenario_that_is_verified_without_a_reset_judges_copies(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("command = 'true'\n[world]\nverify = './check'\n[[faults]]\nfault = 'digit'\n")
    table: dict[str, object] = {"traces": [str(file)]}
    found = parse_campaign(table, tmp_path / "c.toml")
    assert (found.reset, found.verify) == ("true {workspace}", "./check")
    with pytest.raises(ScenarioError, match="in_place: needs a reset"):
        parse_campaign(table | {"in_place": True}, tmp_path / "c.toml")


def test_the_practice_world_is_each_workers_own(tmp_path: Path) -> None:
    found = parse_campaign({"practice": PRACTICE}, tmp_path / "c.toml")
    assert count_worlds(found, TraceStore(tmp_path / "s")) is None


@pytest.mark.parametrize(
    ("world", "more", "why"),
    [
        ({"reset": "true", "instances": 2}, {}, "reset names no {slot} or {port}"),
        ({"reset": "true {port}"}, {}, "world.port: is missing"),
        ({"reset": "true"}, {"hosts": {"a": "b:{port}"}}, "[world] has no port"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(
    tmp_path: Path, world: dict[str, object], more: dict[str, object], why: str
) -> None:
    with pytest.raises(ValueError, match="world|hosts") as error:
        asked(tmp_path, world, **more)
    assert why in str(error.value)


def test_a_path_that_takes_changes_is_known_and_is_there(tmp_path: Path) -> None:
    plain = asked(tmp_path, {})
    found = asked(tmp_path, {}, writable=["a.tape"])
    assert found.writable == (tmp_path / "a.tape",)
    assert fingerprint_surroundings(found) != fingerprint_surroundings(plain)
    with pytest.raises(ValueError, match=r"writable: .*/none: no such file or folder"):
        asked(tmp_path, {}, writable=["none"])
    with pytest.raises(UsageError, match="--writable: its paths are on this machine"):
        check_ray_campaign(found)
