"""SWE-agent trajectories (`INSTANCE.traj`), written from its documentation of the format.

One step is one entry of `trajectory`: what the model answered, the action that was read out of it
and what the environment observed. Whether an action failed is not said. What system and user said
first stands in `history`. Costs and the way it ended are in `info`.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import orjson
import pyarrow as pa

from traces.formats.files import head, named
from traces.formats.lines import documents
from traces.formats.rows import Rows
from traces.formats.talk import Asked, Said, Talk, add

NAME = "SWE-agent trajectories (a .traj with trajectory, history and info)"

TOOL = "bash"

type Table = dict[str, object]


def fits(path: Path) -> bool:
    """Whether a file begins like a trajectory: mini-swe-agent's has no steps of its own."""
    start = head(path)
    return start.lstrip()[:1] == b"{" and b'"trajectory"' in start and b'"observation"' in start


def tables(path: Path) -> Mapping[str, pa.Table]:
    """The run as a trajectory, steps, tool calls and messages."""
    rows = Rows()
    for document in documents(path):
        if not isinstance(document, dict) or not isinstance(document.get("trajectory"), list):
            raise ValueError("no list of steps under trajectory")
        add(rows, _talk(document, named(path).split(".traj")[0]))
    return rows.tables()


def _talk(run: Table, task: str) -> Talk:
    info = _table(run.get("info"))
    facts = {
        "agent": "swe-agent",
        "task": task,
        "ended": _ended(info.get("exit_status")),
        "cost_usd": _table(info.get("model_stats")).get("instance_cost"),
        "tokens": _tokens(_table(info.get("model_stats"))),
        "seconds": _seconds(run),
    }
    return Talk(source="swe-agent", said=tuple(_said(run)), facts=facts, whole=run)


def _said(run: Table) -> Iterator[Said]:
    history = run.get("history")
    for each in history if isinstance(history, list) else ():
        role = _table(each).get("role")
        if role not in ("system", "user"):
            break
        yield Said(role=str(role), text=_text(each.get("content")))
    steps = run["trajectory"]
    for number, each in enumerate(steps if isinstance(steps, list) else (), 1):
        step, calls = _table(each), list[Asked]()
        action = _text(step.get("action")).strip()
        if action:
            arguments = orjson.dumps({"command": action}).decode()
            calls.append(Asked(id=f"{TOOL}-{number}", tool=TOOL, arguments=arguments))
        text = _text(step.get("response")) or _text(step.get("thought"))
        yield Said(role="assistant", text=text, calls=tuple(calls))
        if action and step.get("observation") is not None:
            text = _text(step.get("observation"))
            yield Said(role="tool", text=text, answers=f"{TOOL}-{number}")


def _ended(status: object) -> str | None:
    if not isinstance(status, str) or not status:
        return None
    if status == "submitted":
        return "final"
    # `submitted (exit_cost)`: what there was of a patch was taken when the budget was gone.
    budget = any(each in status for each in ("exit_cost", "exit_context", "exit_total", "time"))
    return "budget" if budget else "final" if status.startswith("submitted") else "crash"


def _tokens(stats: Table) -> int | None:
    counts = [stats.get("tokens_sent"), stats.get("tokens_received")]
    known = [each for each in counts if isinstance(each, int)]
    return sum(known) if len(known) == 2 else None


def _seconds(run: Table) -> float | None:
    steps = run["trajectory"]
    each = [_table(one).get("execution_time") for one in steps] if isinstance(steps, list) else []
    known = [one for one in each if isinstance(one, int | float)]
    return sum(known) if known and len(known) == len(each) else None


def _text(said: object) -> str:
    """A text, or the texts of a list of parts."""
    if isinstance(said, list):
        return "\n".join(_text(_table(each).get("text")) for each in said)
    return said if isinstance(said, str) else ""


def _table(said: object) -> Table:
    return said if isinstance(said, dict) else {}
