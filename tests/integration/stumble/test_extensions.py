"""Packages of others add commands, engines and rates by entry points, and break nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from stumble.cli.command_table import COMMANDS

ENGINE = "acme_stumble:ask_nothing"
MODULE = """
import click

@click.command()
@click.option("--name", default="nobody")
def greet(name: str) -> None:
    "Greet someone."
    click.echo(f"hello {name}")

def ask_nothing(cluster, tables, text, values, limits):
    return ["cluster", "query"], [(cluster, text)]

def resolve_rates(parameters, store, takes):
    return {key: "0.25" if value == "acme:line" else value for key, value in parameters.items()}
"""


class StrangerPackage:
    """A distribution beside stumble's own, as its installation leaves it, without building it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, entries: str, module: str = MODULE) -> None:
        info = self.folder / "acme_stumble-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-stumble\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(dedent(entries))
        (self.folder / "acme_stumble.py").write_text(module)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join(filter(None, [str(self.folder), os.environ.get("PYTHONPATH")]))
        return subprocess.run(
            [sys.executable, "-m", "stumble", *words],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": path, "STUMBLE_STORE": str(self.folder / "store")},
            capture_output=True,
            text=True,
            timeout=120,
        )


@pytest.fixture
def acme(tmp_path: Path) -> StrangerPackage:
    return StrangerPackage(tmp_path)


def test_a_command_of_another_package_runs_with_its_options_and_defaults(
    acme: StrangerPackage,
) -> None:
    acme.install("[stumble.commands]\ngreet = acme_stumble:greet\n")
    assert acme.run("greet", "--name", "ann").stdout == "hello ann\n"
    (acme.folder / "stumble.toml").write_text('[greet]\nname = "bob"\n')
    assert acme.run("greet").stdout == "hello bob\n"


def test_extensions_lists_ours_and_those_of_others_without_importing_them(
    acme: StrangerPackage,
) -> None:
    acme.install("[stumble.commands]\ngreet = acme_stumble:greet\n", "raise SystemExit(9)\n")
    done = acme.run("extensions", "--json")
    assert done.returncode == 0, done.stderr
    found = {(each["group"], each["name"]): each["package"] for each in json.loads(done.stdout)}
    assert found["stumble.commands", "greet"] == "acme-stumble"
    assert found["stumble.commands", "atlas"] == "stumble"
    assert found["stumble.engines", "spark"] == "stumble"
    assert found["stumble.rates", "atlas"] == "stumble"


def test_a_command_of_stumble_is_not_replaced(acme: StrangerPackage) -> None:
    acme.install("[stumble.commands]\nfaults = acme_stumble:greet\n")
    assert acme.run("faults", "digit").stdout.startswith("V1 digit\n")


@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("import a_module_that_is_not_there\n", "No module named 'a_module_that_is_not_there'"),
        ("", "has no attribute 'greet'"),
        ("greet = 5\n", "'greet' is no click command"),
    ],
)
def test_a_broken_extension_is_named_in_one_line_and_others_run(
    acme: StrangerPackage, module: str, why: str
) -> None:
    acme.install("[stumble.commands]\ngreet = acme_stumble:greet\n", module)
    done = acme.run("greet")
    assert done.returncode == 2
    assert done.stderr.startswith("stumble: ")
    assert done.stderr.count("\n") == 1
    assert why in done.stderr
    assert acme.run("faults", "digit").returncode == 0


def test_a_name_that_is_nearly_an_extension_gets_a_suggestion(acme: StrangerPackage) -> None:
    acme.install("[stumble.commands]\ngreet = acme_stumble:greet\n")
    done = acme.run("gret")
    assert done.returncode == 2
    assert "did you mean greet?" in done.stderr


@pytest.mark.gate
def test_an_engine_of_another_package_answers_queries(acme: StrangerPackage) -> None:
    acme.install(f"[stumble.engines]\nacme = {ENGINE}\n")
    tables = ("--store", "/tables", "--json")
    done = acme.run("sql", "select 1", "--on", "acme://host:1", *tables)
    assert json.loads(done.stdout) == [{"cluster": "acme://host:1", "query": "select 1"}]
    unknown = acme.run("sql", "select 1", "--on", "acmee://host:1", *tables)
    assert unknown.returncode == 2
    assert "did you mean acme?" in unknown.stderr


@pytest.mark.gate
def test_rates_of_another_package_stand_where_a_question_takes_a_rate(
    acme: StrangerPackage,
) -> None:
    acme.install("[stumble.rates]\nacme = acme_stumble\n")
    (acme.folder / "store").mkdir()
    done = acme.run("sql", "survival_table", "e=acme:line", "--json")
    assert done.returncode == 0, done.stderr
    wrong = acme.run("sql", "survival_table", "e=acmee:line")
    assert wrong.returncode == 2


def test_extensions_are_in_no_table_of_the_command_line() -> None:
    assert "atlas" not in COMMANDS
