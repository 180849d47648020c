"""Worker process for a tau2 domain's tools and data: `python -m ... FOLDER`.

Requests and answers are JSON lines on stdin and stdout; the output of tools goes to stderr:

    {"do": "reset", "data": ..., "calls": [[NAME, ARGUMENTS], ...]}   fresh data, then calls
    {"do": "tools"}                                                   names, schemas, descriptions
    {"do": "call", "name": ..., "arguments": ...}                     {"text": ..., "error": ...}
    {"do": "ask", "name": ..., "arguments": ...}                      {"value": ...}, any method
    {"do": "state"}                                                   hash of each part of the data

An exception in the domain's code is an answer: `{"failed": why}`, or an error text for calls.
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

type DomainJson = dict[str, Any]
"""JSON objects whose fields the domain defines."""


class Tau2Domain:
    """The tools of a folder, on data that can be reset."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        sys.path.insert(0, str(folder))
        if importlib.util.find_spec("tau2") is None:
            from scenarios.benchmarks import tau2_shim

            tau2_shim.install_tau2_shim(str(folder))
        module = importlib.import_module("tools")
        base = importlib.import_module("tau2.environment.toolkit").ToolKitBase
        kits = [
            each
            for _, each in inspect.getmembers(module, inspect.isclass)
            if issubclass(each, base) and each.__module__ == module.__name__
        ]
        if len(kits) != 1:
            names = ", ".join(each.__name__ for each in kits) or "none"
            raise ValueError(f"tools.py must have one subclass of ToolKitBase; there is {names}")
        self._kind: type[Any] = kits[0]
        hints = get_type_hints(self._kind.__init__) | get_type_hints(self._kind)
        if "db" not in hints:
            raise ValueError(f"{self._kind.__name__} does not say of which type its db is")
        self._data: type[Any] = hints["db"]
        self._kit: Any = None

    def reset(self, data: DomainJson, calls: list[tuple[str, DomainJson]]) -> DomainJson:
        """Load the data from its file, merge the task's changes, and make the initial calls."""
        path = next(p for name in ("db.json", "db.toml") if (p := self._folder / name).is_file())
        fresh = self._data.load(path)
        if data:
            fresh = self._data.model_validate(_merge_data(fresh.model_dump(), data))
        self._kit = self._kind(fresh)
        for name, arguments in calls:
            getattr(self._kit, name)(**arguments)
        return {}

    def tools(self) -> DomainJson:
        """Return the tools that can be called."""
        return {"tools": [_describe_tau2_tool(name, method) for name, method in self._find_tools()]}

    def call(self, name: str, arguments: DomainJson) -> DomainJson:
        """Return a tool's result as text; an exception becomes an error text."""
        tools = dict(self._find_tools())
        try:
            result = tools[name](**arguments)
        except Exception as error:  # third-party tools may raise anything
            return {"text": f"Error: {error}", "error": True}
        return {
            "text": result if isinstance(result, str) else _to_tool_text(result),
            "error": False,
        }

    def ask(self, name: str, arguments: DomainJson) -> DomainJson:
        """Return the value of any method."""
        return {"value": getattr(self._kit, name)(**arguments)}

    def state(self) -> DomainJson:
        """Return a hash of each part of the data."""
        parts = self._kit.db.model_dump(mode="json")
        return {"state": {key: _hash_data_part(value) for key, value in parts.items()}}

    def _find_tools(self) -> Iterator[tuple[str, Callable[..., Any]]]:
        for name, method in inspect.getmembers(self._kit, inspect.ismethod):
            if getattr(method, "__tool__", False) and not getattr(
                method, "__discoverable__", False
            ):
                yield name, method


def _describe_tau2_tool(name: str, method: Callable[..., Any]) -> DomainJson:
    hints = get_type_hints(method, include_extras=True)
    fields: DomainJson = {
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


def _merge_data(old: DomainJson, new: Mapping[str, Any]) -> DomainJson:
    """Merge new data into a copy of the old, table by table."""
    merged = dict(old)
    for key, value in new.items():
        inner = merged.get(key)
        both = isinstance(inner, dict) and isinstance(value, dict)
        merged[key] = _merge_data(inner or {}, value) if both else value
    return merged


def _to_tool_text(value: object) -> str:
    return json.dumps(value, default=_dump_value, ensure_ascii=False)


def _dump_value(value: object) -> object:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else str(value)


def _hash_data_part(value: object) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def main() -> None:
    """Answer requests until stdin closes."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    domain: Tau2Domain | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            domain = domain or Tau2Domain(Path(sys.argv[1]))
            answer = getattr(domain, request.pop("do"))(**request)
            text = json.dumps(answer)
        except Exception as error:  # third-party code may raise anything
            text = json.dumps({"failed": f"{type(error).__name__}: {error}"})
        answers.write(text + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
