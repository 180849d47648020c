"""What a tau2 domain's own files import of tau2, for where tau2 is not installed.

Three modules are enough for most domains: `tau2.environment.toolkit`, by which tools are marked,
`tau2.environment.db`, on which their data is modelled, and `tau2.utils.utils`, which says where
data lie. `tau2.domains.NAME` is the folder itself.
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
    """What a tool does."""

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
        """From a JSON or TOML file; ValueError where it does not fit."""
        text = Path(path).read_text("utf-8")
        said = tomllib.loads(text) if str(path).endswith(".toml") else json.loads(text)
        return cls.model_validate(said)


class ToolKitBase:
    """A domain's tools, on its data."""

    def __init__(self, db: Any = None) -> None:
        self.db = db


class _Domains(importlib.abc.MetaPathFinder):
    """Finds `tau2.domains.NAME`, whatever the name, as the folder of the domain."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find_spec(
        self, fullname: str, path: object, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        """A package with the folder's files, and nothing for any other name."""
        if fullname.rpartition(".")[0] != "tau2.domains":
            return None
        spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations = [self._folder]
        return spec


def install(folder: str) -> None:
    """Be tau2 in this process, for the domain in a folder."""
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
    sys.meta_path.append(_Domains(folder))
