"""The state that the tools of a scripted task act on."""

import json
import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from scenarios.world import EndState, Verdict
from tests.support.scripted.data import ScriptedAgent, ScriptedTask


class ShopState:
    """The effects of one run; it is also the world of the run."""

    def __init__(self, task: ScriptedTask, agent: ScriptedAgent) -> None:
        self._task, self._agent = task, agent
        self.effects: list[dict[str, Any]] = []

    def call(self, tool: str, arguments: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return status and answer of one call."""
        task, first = self._task, next(iter(arguments.values()), None)
        if tool in task.reads:
            record = task.reads[tool].get(str(first))
            return (200, record) if record else (404, {"error": f"no such {tool[4:]}"})
        if tool in task.lists:
            made = [e for e in self.effects if e["tool"] == task.lists[tool]]
            return 200, {"found": [e for e in made if first in e.values()]}
        if tool not in task.writes:
            return 404, {"error": "no such tool"}
        self._write({"tool": tool, **arguments})
        return 200, {**task.writes[tool], "entry": len(self.effects)}

    def _write(self, effect: dict[str, Any]) -> None:
        if key := self._task.keyed.get(effect["tool"]):
            self.effects = [
                e for e in self.effects if (e["tool"], e.get(key)) != (effect["tool"], effect[key])
            ]
        self.effects.append(effect)

    async def reset(self) -> None:
        self.effects = []

    async def verify(self, said: Sequence[str] = ()) -> Verdict:
        if self._agent.by == "answer":
            return Verdict(bool(said and re.search(self._task.answer, said[-1])))
        if self._agent.by == "verify":
            return Verdict(self._right())
        text = json.dumps(self.effects, sort_keys=True)
        digest = blake2b(text.encode(), digest_size=16).hexdigest()
        return Verdict(None, "", EndState(digest, text, self._agent.task))

    def _right(self) -> bool:
        wanted = self._task.expect
        made = [e for e in self.effects if e["tool"] in {w["tool"] for w in wanted}]
        return len(made) == len(wanted) and all(
            any(all(e.get(k) == v for k, v in w.items()) for e in made) for w in wanted
        )
