"""Holds a tau2 domain's tools and data in a process of its own: `python -m ... FOLDER`.

Orders and answers are JSON lines on stdin and stdout; what tools print goes to stderr:

    {"do": "reset", "data": ..., "calls": [[NAME, ARGUMENTS], ...]}   data as new, then this
    {"do": "tools"}                                                   names, schemas, what they do
    {"do": "call", "name": ..., "arguments": ...}                     {"text": ..., "error": ...}
    {"do": "ask", "name": ..., "arguments": ...}                      {"value": ...}, of any method
    {"do": "state"}                                                   a hash for each part of it

Whatever a domain's code raises is an answer, `{"failed": why}` but for calls, and ends nothing.
"""

import hashlib
import importlib
import importlib.util
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import BaseModel, create_model

type Said = dict[str, Any]
"""JSON: what a domain takes and gives is its own affair."""


class Domain:
    """The tools of a folder, on data that can be made new."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        sys.path.insert(0, str(folder))
        if importlib.util.find_spec("tau2") is None:
            from scenarios.benchmarks import stand_in

            stand_in.install(str(folder))
        module = importlib.import_module("tools")
        base = importlib.import_module("tau2.environment.toolkit").ToolKitBase
        found = [
            each
            for _, each in inspect.getmembers(module, inspect.isclass)
            if issubclass(each, base) and each.__module__ == module.__name__
        ]
        if len(found) != 1:
            names = ", ".join(each.__name__ for each in found) or "none"
            raise ValueError(f"tools.py must have one subclass of ToolKitBase; there is {names}")
        self._kind: type[Any] = found[0]
        hints = get_type_hints(self._kind.__init__) | get_type_hints(self._kind)
        if "db" not in hints:
            raise ValueError(f"{self._kind.__name__} does not say of which type its db is")
        self._data: type[Any] = hints["db"]
        self._kit: Any = None

    def reset(self, data: Said, calls: list[tuple[str, Said]]) -> Said:
        """Data as in its file, with what a task changes of it before it begins."""
        path = next(p for name in ("db.json", "db.toml") if (p := self._folder / name).is_file())
        fresh = self._data.load(path)
        if data:
            fresh = self._data.model_validate(_merged(fresh.model_dump(), data))
        self._kit = self._kind(fresh)
        for name, arguments in calls:
            getattr(self._kit, name)(**arguments)
        return {}

    def tools(self) -> Said:
        """What can be called."""
        return {"tools": [_offer(name, method) for name, method in self._marked()]}

    def call(self, name: str, arguments: Said) -> Said:
        """What a tool gives, as text; what it raises is an answer too."""
        tools = dict(self._marked())
        try:
            given = tools[name](**arguments)
        except Exception as error:  # a tool of somebody's may raise anything
            return {"text": f"Error: {error}", "error": True}
        return {"text": given if isinstance(given, str) else _json(given), "error": False}

    def ask(self, name: str, arguments: Said) -> Said:
        """What any method gives."""
        return {"value": getattr(self._kit, name)(**arguments)}

    def state(self) -> Said:
        """A hash for each part of the data."""
        parts = self._kit.db.model_dump(mode="json")
        return {"state": {key: _hash(value) for key, value in parts.items()}}

    def _marked(self) -> Iterator[tuple[str, Callable[..., Any]]]:
        for name, method in inspect.getmembers(self._kit, inspect.ismethod):
            if getattr(method, "__tool__", False) and not getattr(
                method, "__discoverable__", False
            ):
                yield name, method


def _offer(name: str, method: Callable[..., Any]) -> Said:
    hints = get_type_hints(method, include_extras=True)
    fields: Said = {
        each.name: (hints.get(each.name, Any), ... if each.default is each.empty else each.default)
        for each in inspect.signature(method).parameters.values()
    }
    schema = create_model(name, **fields).model_json_schema()
    kind = getattr(method, "__tool_type__", "")
    writes = str(getattr(kind, "value", kind)) == "write"
    return {
        "name": name,
        "description": inspect.getdoc(method) or "",
        "parameters": schema,
        "writes": bool(getattr(method, "__mutates_state__", writes)),
    }


def _merged(old: Said, new: Mapping[str, Any]) -> Said:
    """The old with what is new, table by table."""
    found = dict(old)
    for key, value in new.items():
        inner = found.get(key)
        both = isinstance(inner, dict) and isinstance(value, dict)
        found[key] = _merged(inner or {}, value) if both else value
    return found


def _json(value: object) -> str:
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: object) -> object:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else str(value)


def _hash(value: object) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def main() -> None:
    """Answer orders until there are no more."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    domain: Domain | None = None
    for line in sys.stdin:
        order = json.loads(line)
        try:
            domain = domain or Domain(Path(sys.argv[1]))
            said = getattr(domain, order.pop("do"))(**order)
            text = json.dumps(said)
        except Exception as error:  # the code is somebody's, and may raise anything
            text = json.dumps({"failed": f"{type(error).__name__}: {error}"})
        answers.write(text + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
