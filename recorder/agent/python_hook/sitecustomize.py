"""Puts the stdio MCP servers that a Python program starts by the `mcp` SDK behind the run's tee.

Loaded by every Python of a run, since PYTHONPATH names its folder: before the program's first line,
and beside any `sitecustomize` of the user's, which is loaded too. The libraries of agents
(langchain-mcp-adapters, openai-agents, pydantic-ai, fastmcp) start servers with `stdio_client` of
`mcp.client.stdio`; it is wrapped when a program imports that module. Nothing else changes, and
programs without it import nothing more.

Runs on the agent's Python, of any version that the SDK supports; standard library only.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
TEE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "mcp", "tee.py")
CLIENT_MODULE = "mcp.client.stdio"
RUN_SOCKET_VARIABLE, TEE_PYTHON_VARIABLE = "STUMBLE_RUN", "STUMBLE_PYTHON"
INTERPRETERS = ("python", "node", "npx", "npm", "uvx", "uv", "bun", "deno")


class StdioClientFinder:
    """Finds `mcp.client.stdio` once, and wraps what it defines."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of the module as others find it; None for any other module."""
        if name != CLIENT_MODULE:
            return None
        sys.meta_path.remove(self)
        from importlib.util import find_spec

        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_wrap(module: Any) -> None:
                execute(module)
                module.stdio_client = wrap_stdio_client(module.stdio_client)

            spec.loader.exec_module = execute_and_wrap  # type: ignore[method-assign]
        return spec


def wrap_stdio_client(client: Callable[..., Any]) -> Callable[..., Any]:
    """Return a client that starts its server behind the tee."""
    from functools import wraps

    @wraps(client)
    def stdio_client(server: Any, *args: Any, **kwargs: Any) -> Any:
        words = wrap_in_tee([server.command, *server.args])
        changes = {"command": words[0], "args": words[1:]}
        return client(server.model_copy(update=changes), *args, **kwargs)

    return stdio_client


def wrap_in_tee(words: list[str]) -> list[str]:
    """Return a server's command behind the run's tee; unchanged if it is, or without a run."""
    run, python = os.environ.get(RUN_SOCKET_VARIABLE), os.environ.get(TEE_PYTHON_VARIABLE)
    if not run or not python or TEE in words or is_recorder(words):
        return words
    return [python, "-I", "-S", TEE, "--name", name_server(words), "--run", run, "--", *words]


def is_recorder(words: list[str]) -> bool:
    """Return whether the command is `stumble mcp`, or `python -m stumble mcp`."""
    called = [os.path.basename(words[0]), *words[1:]]
    begin = called.index("-m") + 1 if "-m" in called[:4] else 0
    return called[begin : begin + 2] == ["stumble", "mcp"]


def name_server(words: list[str]) -> str:
    """Return a server's name, the same in each run: its script, package or module, else program."""
    program = os.path.basename(words[0])
    plain = [word for word in words[1:] if not word.startswith("-")]
    if program.startswith(INTERPRETERS) and plain:
        return os.path.basename(plain[0]).partition(".py")[0] or program
    return program


def load_next_sitecustomize() -> None:
    """Load the module that this one hides, if there is one."""
    sys.path[:] = [each for each in sys.path if os.path.abspath(each or os.curdir) != HERE]
    spec = PathFinder.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        from importlib.util import module_from_spec

        module = sys.modules["sitecustomize"] = module_from_spec(spec)
        spec.loader.exec_module(module)


if os.environ.get(RUN_SOCKET_VARIABLE):
    sys.meta_path.insert(0, StdioClientFinder())
load_next_sitecustomize()
