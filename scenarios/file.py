"""A scenario: a task, an agent, its tools and world, and what is to go wrong; one TOML file.

    title = "The refund is paid, and the answer is lost"
    about = "What happened to whom, and what a good agent does about it."
    command = "python my_agent.py"              the agent; left out where others bring theirs
    task = "refund"                             what the store calls it; agent and model likewise
    seed = 7                                    twins, budget (seconds) and seed of its runs

    [world]                                     two commands: one sets it back, one exits 0 where
    reset = "python reset_shop.py"              the end state is right
    verify = "python check_shop.py"

    [tools]                                     which requests a tool makes
    issue_refund = "POST */refunds"

    [practice]                                  how it is run in the practice world
    task = "refund-1"
    model = "practice/naive"
    tools = "http"                              or mcp, local
    stream = true                               the model's answers come as streams

    [match]                                     what may differ from a recording
    rules = ["ignore:body.run_id"]

    [[faults]]                                  as many as are to strike, in the words of --fault
    fault = "lost_ack"
    where = { tool = "issue_refund" }

A file is read into plain values. What faults and rules say is checked by the rooms that know them.
"""

import math
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from traces import requests
from traces.nearest import nearest

LIBRARY = Path(__file__).parent / "library"

type Tools = Literal["http", "mcp", "local"]
TOOLS: tuple[Tools, ...] = ("http", "mcp", "local")


class ScenarioError(ValueError):
    """What a scenario file says that cannot be: file, key and reason."""

    def __init__(self, path: Path, key: str, reason: str) -> None:
        super().__init__(f"{path}: {key}: {reason}" if key else f"{path}: {reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Practice:
    """How a scenario is run in the practice world."""

    task: str
    model: str
    tools: Tools
    stream: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What a scenario file says."""

    path: Path
    title: str
    about: str = ""
    command: tuple[str, ...] = ()
    agent: str | None = None
    model: str | None = None
    task: str | None = None
    seed: int = 0
    twins: int = 3
    budget: float = 600.0
    reset: str | None = None
    verify: str | None = None
    tools: Mapping[str, str] = field(default_factory=dict)
    practice: Practice | None = None
    rules: tuple[str, ...] = ()
    """Of [match], as in `replay.rules`, not looked at yet."""
    faults: tuple[Mapping[str, object], ...] = ()
    """As in `faults.grammar`, not looked at yet."""

    @property
    def name(self) -> str:
        """By which it is asked for."""
        return self.path.stem


def library() -> tuple[Path, ...]:
    """The ready scenarios, by name."""
    return tuple(sorted(LIBRARY.glob("*.toml")))


def find(name: str) -> Path:
    """The file of a ready scenario, or that at a path; LookupError where there is neither."""
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise LookupError(f"{name}: there is no such file")
        return path
    ready = {path.stem: path for path in library()}
    if name not in ready:
        raise LookupError(f"no scenario is called {name!r}{nearest(name, ready)}")
    return ready[name]


def read(path: Path) -> Scenario:
    """The scenario of a file; ScenarioError, with key and nearest name, where it says none."""
    try:
        said = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(path, "", f"no TOML: {error}") from None
    except OSError as error:
        raise ScenarioError(path, "", error.strerror or str(error)) from None
    top = _Table(path, "", said)
    top.only(
        "title about command agent model task seed twins budget world tools practice match faults"
    )
    world, match = top.table("world"), top.table("match")
    world.only("reset verify")
    match.only("rules")
    if world.text("verify") and not world.text("reset"):
        raise ScenarioError(path, "world.verify", "needs reset: a used world proves nothing")
    tools = top.table("tools")
    return Scenario(
        path=path,
        title=top.text("title") or path.stem,
        about=(top.text("about") or "").strip(),
        command=top.words("command"),
        agent=top.text("agent"),
        model=top.text("model"),
        task=top.text("task"),
        seed=top.whole("seed", 0, 0),
        twins=top.whole("twins", 3, 0),
        budget=top.seconds("budget", 600.0),
        reset=world.text("reset"),
        verify=world.text("verify"),
        tools={name: tools.requests(name) for name in tools.said},
        practice=_practice(top.table("practice")) if "practice" in said else None,
        rules=match.texts("rules"),
        faults=top.tables("faults"),
    )


def _practice(table: "_Table") -> Practice:
    table.only("task model tools stream")
    tools = table.text("tools") or "http"
    for known in TOOLS:
        if tools == known:
            model = table.text("model") or "practice/naive"
            task, stream = table.needed("task"), table.true("stream")
            return Practice(task=task, model=model, tools=known, stream=stream)
    raise table.wrong("tools", f"{tools!r} cannot be had{nearest(tools, TOOLS)}")


class _Table:
    """A table of the file, asked for values of one type each."""

    def __init__(self, path: Path, name: str, said: Mapping[str, object]) -> None:
        self._path, self._name, self.said = path, name, said

    def wrong(self, key: str, reason: str) -> ScenarioError:
        return ScenarioError(self._path, f"{self._name}.{key}" if self._name else key, reason)

    def only(self, keys: str) -> None:
        known = keys.split()
        for key in self.said:
            if key not in known:
                raise self.wrong(key, f"no such key{nearest(key, known)}")

    def text(self, key: str) -> str | None:
        value = self.said.get(key)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise self.wrong(key, f"{value!r} is not a text")
        return value if isinstance(value, str) else None

    def needed(self, key: str) -> str:
        value = self.text(key)
        if value is None:
            raise self.wrong(key, "is missing")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.said.get(key, [])
        if not isinstance(value, list):
            raise self.wrong(key, 'it is a list of texts, as in ["..."]')
        for number, text in enumerate(value):
            if not isinstance(text, str):
                raise self.wrong(f"{key}[{number}]", f"{text!r} is no text")
        return tuple(value)

    def words(self, key: str) -> tuple[str, ...]:
        """A command, as one text or as a list."""
        if not isinstance(self.said.get(key), str):
            return self.texts(key)
        try:
            return tuple(shlex.split(self.needed(key)))
        except ValueError as error:
            raise self.wrong(key, f"{self.said[key]!r}: {error}") from None

    def true(self, key: str) -> bool:
        value = self.said.get(key, False)
        if not isinstance(value, bool):
            raise self.wrong(key, f"{value!r} is neither true nor false")
        return value

    def whole(self, key: str, default: int, least: int) -> int:
        value = self.said.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.wrong(key, f"{value!r} is not a whole number from {least}")
        return value

    def seconds(self, key: str, default: float) -> float:
        value = self.said.get(key, default)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.wrong(key, f"{value!r} is not a number of seconds above 0")
        if not 0 < value < math.inf:
            raise self.wrong(key, f"{value!r} is not a number of seconds above 0")
        return float(value)

    def requests(self, key: str) -> str:
        """Which requests a tool makes."""
        text = self.needed(key)
        try:
            requests.check(text)
        except ValueError as error:
            raise self.wrong(key, str(error)) from None
        return text

    def table(self, key: str) -> "_Table":
        value = self.said.get(key, {})
        if not isinstance(value, dict):
            raise self.wrong(key, f"it is a table, as in [{key}]")
        return _Table(self._path, key, value)

    def tables(self, key: str) -> tuple[Mapping[str, object], ...]:
        value = self.said.get(key, [])
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self.wrong(key, f"it is a list of tables, as in [[{key}]]")
        return tuple(value)
