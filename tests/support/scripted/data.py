"""The scripted agents and their tasks, parsed from their files."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

FOLDER = Path(__file__).parents[2] / "data" / "scripted_agents"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedTask:
    """An agent's prompt, its tools, and the right end state."""

    prompt: str
    fault: str
    where: str
    expect: Sequence[Mapping[str, Any]]
    answer: str = ""
    """A pattern of the right answer."""
    reads: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Records by tool and by the value of the first argument."""
    writes: Mapping[str, Any] = field(default_factory=dict)
    """The answer of each writing tool."""
    lists: Mapping[str, str] = field(default_factory=dict)
    """Tools that read back the effects of another."""
    keyed: Mapping[str, str] = field(default_factory=dict)
    """Writing tools whose effect replaces the one with the same value of this argument."""
    local: Sequence[str] = ()
    """Tools that never touch the network."""

    @property
    def tools(self) -> tuple[str, ...]:
        return (*self.reads, *self.writes, *self.lists)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedCase:
    """One fault, and its required verdict."""

    outcome: str | Sequence[str]
    """The class, `unknown` for none; if there are several, each is right."""
    fault: str | None = None
    where: str | None = None
    at: str = "http"
    nth: int | None = None
    persist: str = "once"
    claim: str | None = None
    noticed: bool | None = None
    false_failure: bool | None = None

    @property
    def outcomes(self) -> tuple[str, ...]:
        return (self.outcome,) if isinstance(self.outcome, str) else tuple(self.outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedAgent:
    """A policy, the behaviour of the program around it, and the effects of faults on it."""

    name: str
    task: str
    script: str
    """The body of a generator: it yields calls and receives replies; its return value is the
    answer.
    """
    cases: Sequence[ExpectedCase]
    held_out: bool = False
    """Not examined during the judge's development: only counted."""
    unseen: bool = False
    """Written by somebody who had not read the judge, and run when it was done."""
    by: Literal["verify", "state", "answer"] = "verify"
    """How the end state is checked."""
    helper: str = ""
    """The policy of the subagent that `delegate` calls."""
    then: Sequence[Mapping[str, str]] = ()
    """A further prompt after the answer, in the same or in a new conversation."""
    form: Literal["tools", "react"] = "tools"
    """Whether calls are made by the wire's own form or as text."""
    max_turns: int = 12
    exit: int = 0
    exit_on: Mapping[str, Any] = field(default_factory=dict)
    """An exit status for answers that contain a text."""
    on_error: Literal["tell", "die"] = "tell"
    coins: Mapping[str, Any] = field(default_factory=dict)
    """The value of `coin` in each clean twin, and in a faulted run."""
    twins: int = 3
    times: int = 1

    def coin(self, condition: str, rep: int) -> Any:
        if condition == "fault":
            return self.coins.get("faulted", False)
        twins = self.coins.get("twins", [False])
        return twins[rep % len(twins)]


def load_tasks() -> dict[str, ScriptedTask]:
    tables = tomllib.loads((FOLDER / "tasks.toml").read_text())
    return {name: ScriptedTask(**table) for name, table in tables.items()}


def load_agents() -> tuple[ScriptedAgent, ...]:
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        if path.name != "tasks.toml":
            for table in tomllib.loads(path.read_text())["agent"]:
                cases = tuple(ExpectedCase(**case) for case in table.pop("cases"))
                unseen = path.name.startswith("unseen")
                found.append(ScriptedAgent(**table, cases=cases, unseen=unseen))
    return tuple(found)
