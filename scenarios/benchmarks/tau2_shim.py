"""Stand-ins for the tau2 modules that domain files import, used if tau2 is not installed.

Three modules suffice for most domains: `tau2.environment.toolkit` (marks tools),
`tau2.environment.db` (base class of the data) and `tau2.utils.utils` (the data folder).
`tau2.domains.NAME` is the folder itself.
"""

import enum
import importlib.abc
import importlib.machinery
import json
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class ToolType(enum.StrEnum):
    """The effect of a tool."""

    READ = "read"
    WRITE = "write"
    THINK = "think"
    GENERIC = "generic"


def is_tool[**P, R](
    tool_type: ToolType = ToolType.READ, mutates_state: bool | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a method as a tool."""

    def mark(method: Callable[P, R]) -> Callable[P, R]:
        changes = tool_type == ToolType.WRITE if mutates_state is None else mutates_state
        marks = {"__tool__": True, "__tool_type__": tool_type, "__mutates_state__": changes}
        vars(method).update(marks)
        return method

    return mark


class DB(BaseModel):
    """The data of a domain."""

    model_config = ConfigDict(extra="forbid")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load a JSON or TOML file. Raises ValueError if it does not fit the model."""
        text = Path(path).read_text("utf-8")
        document = tomllib.loads(text) if str(path).endswith(".toml") else json.loads(text)
        return cls.model_validate(document)


class ToolKitBase:
    """A domain's tools on its data."""

    def __init__(self, db: Any = None) -> None:
        self.db = db


class _Tau2DomainFinder(importlib.abc.MetaPathFinder):
    """Import `tau2.domains.NAME`, for any name, from the domain's folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find_spec(
        self, fullname: str, path: object, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a package spec for the folder, or None for any other module."""
        if fullname.rpartition(".")[0] != "tau2.domains":
            return None
        spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations = [self._folder]
        return spec


def install_tau2_shim(folder: str) -> None:
    """Install the stand-in modules in this process, for the domain in a folder."""
    for name in ("tau2", "tau2.environment", "tau2.domains", "tau2.utils"):
        package = ModuleType(name)
        package.__path__ = []
        sys.modules[name] = package
    toolkit, db = ModuleType("tau2.environment.toolkit"), ModuleType("tau2.environment.db")
    vars(toolkit).update(ToolKitBase=ToolKitBase, ToolType=ToolType, is_tool=is_tool)
    utils = ModuleType("tau2.utils.utils")
    vars(db).update(DB=DB)
    vars(utils).update(DATA_DIR=Path(folder))
    sys.modules |= {each.__name__: each for each in (toolkit, db, utils)}
    sys.meta_path.append(_Tau2DomainFinder(folder))
