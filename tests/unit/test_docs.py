"""The pages of docs/: files, links, commands and options that they name exist."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from faults import bind_operator, plugins
from faults.operator import OPERATORS, Operator
from faults.specs import spec_syntax
from faults.specs.spec_parser import parse_fault as read_fault
from faults.targeting import selector, triggers
from scenarios import scenario
from scenarios.toml_reader import TypedTable
from stumble.campaigns import spec
from stumble.cli.command_table import find_command, list_command_names
from stumble.experiments.seals.analysis_terms import SEAL_KEYS
from traces.dialects import LENSES
from traces.store.schema import SCHEMAS
from traces.store.sql import VIEWS, list_questions

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
TEXTS = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "examples/README.md"]
PACKAGES = "attach|docs|examples|faults|recorder|replay|sandbox|scenarios|stumble|tests|traces"
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
COMMAND = re.compile(r"(?:^|[`$ ])stumble ([a-z]+(?:-[a-z]+)*)((?:[^\n`\\|#]|\\\n)*)", re.MULTILINE)
PLACEHOLDER = re.compile(r"/[A-Z]+(?:/|\Z)")
MAX_TERMS = 40


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def list_named_files(text: str) -> set[str]:
    """The files of this repository that a page names: any .py file, and any path in code."""
    spans = re.findall(rf"`((?:{PACKAGES})/[\w./-]+)`", text)
    modules = re.findall(rf"(?<![\w./-])(?:{PACKAGES})/[\w./-]+\.py\b", text)
    return {file for file in (*spans, *modules) if not PLACEHOLDER.search(file)}


def list_commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands in the code of a page: name, and the words up to `--`."""
    for code in CODE.findall(text):
        for match in COMMAND.finditer(code):
            yield match[1], re.split(r"(?<!\S)--(?!\S)", match[2].replace("\\\n", " "))[0]


def find_unknown(command: str, words: str) -> list[str]:
    """What of a command line is not in the program: the command, or some of its options."""
    if (found := find_command(command)) is None:
        return [command]
    for word in words.split():
        if isinstance(found, click.Group) and word in found.commands:
            found = found.commands[word]
    if found.context_settings.get("ignore_unknown_options"):  # another program has the options
        return []
    known = {option for each in found.params for option in (*each.opts, *each.secondary_opts)}
    given = re.findall(r"(?<!\S)--[a-z][a-z-]*", words)
    return [f"{command} {option}" for option in given if option not in {*known, "--help"}]


def slug(heading: str) -> str:
    """The anchor that mkdocs gives a heading."""
    kept = re.sub(r"[^\w\s-]", "", heading.lower()).strip()
    return re.sub(r"[-\s]+", "-", kept)


def list_anchors(page: Path) -> set[str]:
    return {slug(line) for line in re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)}


@pytest.mark.parametrize("page", TEXTS, ids=name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    missing = [file for file in list_named_files(page.read_text()) if not (ROOT / file).exists()]
    assert sorted(missing) == []


@pytest.mark.parametrize("page", TEXTS, ids=name)
def test_relative_links_of_a_page_resolve(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", page.read_text())):
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        if "://" not in link and not (
            target.exists() and (not anchor or anchor in list_anchors(target))
        ):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", TEXTS, ids=name)
def test_commands_and_options_of_a_page_exist(page: Path) -> None:
    commands = list_commands(page.read_text())
    assert [unknown for each in commands for unknown in find_unknown(*each)] == []


def list_helps(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
    """The examples in the help of a command and its subcommands, by the words that call it."""
    shown = re.findall(r"\x08\n(.*?)(?:\n\n|\Z)", command.help or "", re.DOTALL)
    yield f"stumble {path} --help", "```{}```".format("\n".join(shown))
    for word, inner in command.commands.items() if isinstance(command, click.Group) else ():
        yield from list_helps(inner, f"{path} {word}")


HELPS = dict(
    help
    for path in list_command_names()
    if (command := find_command(path)) is not None
    for help in list_helps(command, path)
)
EXAMPLES = {name(page): page.read_text() for page in TEXTS} | HELPS


@pytest.mark.parametrize("text", HELPS.values(), ids=HELPS)
def test_commands_and_options_of_a_help_exist(text: str) -> None:
    assert [unknown for each in list_commands(text) for unknown in find_unknown(*each)] == []


def list_faults(text: str) -> list[str]:
    """The faults in the commands of a text."""
    given = (re.findall(r"--fault[ =]([^ ]+)", words) for _, words in list_commands(text))
    return [fault for faults in given for fault in faults if fault not in EXAMPLE_FAULTS]


EXAMPLE_FAULTS = ("...", "round_off:decimals=0")
"""Of no fault, and of examples/operator_plugin."""


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES)
def test_faults_in_the_commands_of_a_text_exist_with_their_parameters(text: str) -> None:
    for fault in list_faults(text):
        bind_operator(read_fault({"fault": fault}))


def list_queries(text: str) -> Iterator[tuple[str, list[str]]]:
    """The questions, views and relations that commands ask, with the names of parameters."""
    for command, words in list_commands(text):
        first, *given = words.split() or [""]
        if command == "sql" and re.fullmatch("[a-z_]+", first):
            yield first, [each.partition("=")[0] for each in given if re.match("[a-z_]+=", each)]


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES)
def test_questions_in_the_commands_of_a_text_exist_with_their_parameters(text: str) -> None:
    known = {each.name: set(each.defaults) for each in list_questions()}
    known |= {each: set() for each in (*VIEWS, *SCHEMAS)}
    queries = list(list_queries(text))
    assert [query for query, _ in queries if query not in known] == []
    assert [query for query, given in queries if not set(given) <= known[query]] == []


def test_what_is_not_there_would_be_found() -> None:
    text = "see `faults/nothing.py` or `stumble frok run.tape`, `stumble fork run.tape --fualt x`"
    assert list_named_files(text) == {"faults/nothing.py"}
    unknown = [each for found in list_commands(text) for each in find_unknown(*found)]
    assert unknown == ["frok", "fork --fualt"]


def test_the_glossary_is_short_and_in_order() -> None:
    rows = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)[1:]
    assert len(rows) <= MAX_TERMS
    assert rows == sorted(rows)


def test_the_navigation_names_every_page() -> None:
    named = re.findall(
        r"^ +- (?:\w[\w ]*: )?([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M
    )
    assert sorted(named) == sorted(page.name for page in PAGES)


def read(page: str) -> str:
    return (ROOT / "docs" / page).read_text()


def read_rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    section = re.split(
        r"^## ", read(page).partition(f"\n## {heading}\n")[2], maxsplit=1, flags=re.M
    )
    lines = [line for line in section[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def list_keys(page: str, heading: str) -> list[str]:
    """The names in the first column of a table."""
    return [row[0].strip("`") for row in read_rows(page, heading)]


def format_default(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case "":
            return '""'
        case _:
            return str(value)


def test_operators_are_in_the_table_with_their_parameters_and_places() -> None:
    def row(each: Operator) -> list[str]:
        given = (f"`{n}={format_default(p.default)}`" for n, p in each.params.items())
        params = ", ".join(given) or "none"
        return [each.code, f"`{each.name}`", each.family, params, ", ".join(each.places)]

    rows = [row[:3] + row[4:] for row in read_rows("operators.md", "All operators")]
    own = (each for each in OPERATORS.values() if each.function.__module__.startswith("faults."))
    assert rows == [row(each) for each in sorted(own, key=plugins._make_sort_key)]


def test_selectors_triggers_and_persistences_are_named() -> None:
    words = " ".join(map(" ".join, read_rows("operators.md", "Selecting calls")))
    wanted = (*selector.SELECTORS, *triggers.TRIGGERS, *triggers.PERSISTENCES, *spec_syntax.PLACES)
    assert [each for each in wanted if each not in words] == []


def test_the_page_on_operators_shows_the_plug_in_as_it_is() -> None:
    module = ROOT / "examples/operator_plugin/rounding_faults.py"
    assert f"```python\n{module.read_text()}```" in read("operators.md")


class Recorded(TypedTable):
    """A table that notes which keys each table of a file may have."""

    allowed: dict[str, list[str]] = {}

    def allow_only(self, keys: str) -> None:
        self.allowed[re.sub(r"\[\d+\]", "", self.name)] = keys.split()
        super().allow_only(keys)

    def get_table(self, key: str) -> TypedTable:
        found = super().get_table(key)
        return Recorded(self._path, found.name, found.entries)


def test_scenarios_have_their_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenario, "TypedTable", Recorded)
    monkeypatch.setattr(Recorded, "allowed", {})
    file = tmp_path / "a.toml"
    file.write_text('[practice]\ntask = "refund-1"\n')
    scenario.read_scenario(file)
    keys = {name: list_keys("scenarios.md", f"[{name}]") for name in Recorded.allowed if name}
    keys[""] = list_keys("scenarios.md", "Top level")
    assert keys == Recorded.allowed
    assert sorted(list_keys("scenarios.md", "[[faults]]")) == sorted(spec_syntax.KEYS)
    tables = {name for name in keys[""] if f"\n## [{name}]\n" in read("scenarios.md")}
    assert tables == {"world", "effects", "tools", "equivalent", "practice", "match"}


def test_campaigns_have_their_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spec, "TypedTable", Recorded)
    monkeypatch.setattr(Recorded, "allowed", {})
    practice = {"tasks": ["refund-1"], "models": ["practice/naive"]}
    spec.parse_campaign({"practice": practice}, tmp_path / "a.toml")
    allowed = {**Recorded.allowed, "seal": SEAL_KEYS.split()}
    keys = {name: sorted(list_keys("campaigns.md", f"[{name}]")) for name in allowed if name}
    keys[""] = sorted(list_keys("campaigns.md", "Top level"))
    assert keys == {name: sorted(found) for name, found in allowed.items()}


def test_relations_views_and_questions_are_listed() -> None:
    assert list_keys("sql.md", "Relations") == list(SCHEMAS)
    assert list_keys("sql.md", "Views") == list(VIEWS)
    rows = [(row[0].strip("`"), row[2]) for row in read_rows("sql.md", "Questions")]
    assert rows == [
        (each.name, ", ".join(f"`{k}={json.dumps(v)}`" for k, v in each.defaults.items()) or "none")
        for each in list_questions()
    ]


def test_dialects_are_listed() -> None:
    names = (str(getattr(each, "__name__")) for each in LENSES)  # noqa: B009 (a module)
    modules = {f"{name.replace('.', '/')}.py" for name in names}
    assert modules <= list_named_files(read("clients.md"))


@pytest.mark.parametrize("page", ["scenarios.md", "campaigns.md"])
def test_examples_of_keys_are_toml(page: str) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", read(page), re.DOTALL)
    assert len([tomllib.loads(block) for block in blocks]) >= 2
    rows = re.findall(r"^\| `(\w+)` \|.*\| `([^`]*)` \|$", read(page), re.MULTILINE)
    assert len(rows) > 20
    assert [key for key, example in rows if key not in tomllib.loads(example)] == []


def test_the_first_example_of_scenarios_and_of_campaigns_is_valid(tmp_path: Path) -> None:
    first = {page: read(page).partition("```toml\n")[2].partition("```")[0]
             for page in ("scenarios.md", "campaigns.md")}  # fmt: skip
    file = tmp_path / "a.toml"
    file.write_text(first["scenarios.md"])
    assert read_fault(scenario.read_scenario(file).faults[0]).name == "lost_ack"
    (tmp_path / "refund.tape").touch()
    campaign = spec.parse_campaign(tomllib.loads(first["campaigns.md"]), tmp_path / "b.toml")
    assert [each.scenario for each in campaign.sources] == [None, "lost-ack-on-refund"]


def test_the_licence_of_each_locked_package_is_on_the_page() -> None:
    lock, page = (ROOT / "requirements.lock").read_text(), (ROOT / "docs/licences.md").read_text()
    locked = {match.lower() for match in re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)}
    listed = set(re.findall(r"[a-z0-9][a-z0-9.-]+", page))
    assert locked - listed == set()
