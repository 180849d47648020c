"""A scenario file is read into plain values, or its first mistake is said with file and key."""

from pathlib import Path

import pytest

from scenarios.scenario import PracticeSettings, find_scenario, list_ready_scenarios, read_scenario
from scenarios.toml_reader import ScenarioError

WHOLE = """
title = "A refund is paid twice"
about = "It happened."
command = "python 'my agent.py'"
agent = "mine"
task = "refund"
seed = 7
budget = 60
[world]
reset = "python reset.py"
verify = "python check.py"
[tools]
issue_refund = "POST */refunds"
[equivalent]
get_order = ["find_order", "list_orders"]
[practice]
task = "refund-1"
tools = "mcp"
[match]
rules = ["ignore:body.run_id"]
[[faults]]
fault = "truncate:keep=0.3"
where = { tool = "search*" }
[[faults]]
fault = "delay"
"""


def test_a_file_is_read_into_plain_values(tmp_path: Path) -> None:
    path = tmp_path / "twice.toml"
    path.write_text(WHOLE)
    found = read_scenario(path)
    assert (found.name, found.title, found.about) == (
        "twice",
        "A refund is paid twice",
        "It happened.",
    )
    assert found.command == ("python", "my agent.py")
    assert (found.agent, found.model, found.task, found.seed) == ("mine", None, "refund", 7)
    assert (found.twins, found.budget) == (3, 60.0)
    assert (found.reset, found.verify) == ("python reset.py", "python check.py")
    assert found.tools == {"issue_refund": "POST */refunds"}
    assert found.equivalent == {"get_order": ("find_order", "list_orders")}
    assert found.practice == PracticeSettings(task="refund-1", model="practice/naive", tools="mcp")
    assert found.rules == ("ignore:body.run_id",)
    assert found.faults == (
        {"fault": "truncate:keep=0.3", "where": {"tool": "search*"}},
        {"fault": "delay"},
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "[world]\nreset = 'x'\nanswer = '('",
            "world.answer: '(' is no regular expression: missing ), unterminated subpattern",
        ),
        ("budget = nan", "budget: nan is not a number of seconds above 0"),
        ("budget = inf", "budget: inf is not a number of seconds above 0"),
        ("[tools]\na = 'POST'", "tools.a: 'POST' is not METHOD GLOB, as in POST */refunds"),
        ("[tools]\na = 'PSOT /x'", "tools.a: no method is called 'PSOT'; did you mean POST?"),
        ("[tools]\na = 'POST x'", "tools.a: no path is like 'x', since paths begin with /"),
        ("title = ", "no TOML: "),
        ("titel = 'x'", "titel: no such key; did you mean title?"),
        ("title = 3", "title: 3 is not a text"),
        ("seed = -1", "seed: -1 is not a whole number from 0"),
        ("twins = true", "twins: True is not a whole number from 0"),
        ("budget = 0", "budget: 0 is not a number of seconds above 0"),
        ('command = "python \'x"', "command: "),
        ("command = [1]", "command[0]: 1 is no text"),
        ("world = 'x'", "world: it is a table, as in [world]"),
        ("[world]\nrest = 'x'", "world.rest: no such key; did you mean reset?"),
        ("[tools]\nx = 1", "tools.x: 1 is not a text"),
        ("[practice]\nmodel = 'x'", "practice.task: is missing"),
        ("[practice]\ntask = 'x'\ntools = 'mpc'", "practice.tools: 'mpc' cannot be had; did you"),
        ("[match]\nrules = 'x'", "match.rules: it is a list of texts"),
        ("[faults]\nfault = 'digit'", "faults: it is a list of tables, as in [[faults]]"),
    ],
)
def test_a_mistake_is_said_with_file_and_key(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ScenarioError) as error:
        read_scenario(path)
    assert str(error.value).startswith(f"{path}: {says}")


def test_a_scenario_is_found_by_name_or_by_path(tmp_path: Path) -> None:
    for path in list_ready_scenarios():
        assert find_scenario(path.stem) == path
    mine = tmp_path / "mine.toml"
    mine.touch()
    assert find_scenario(str(mine)) == mine
    with pytest.raises(LookupError, match="there is no such file"):
        find_scenario(str(tmp_path / "other.toml"))
    with pytest.raises(LookupError, match="no scenario is called 'no-such-thing'"):
        find_scenario("no-such-thing")


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="No such file"):
        read_scenario(tmp_path / "x.toml")
