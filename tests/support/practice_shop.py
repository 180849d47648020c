"""The practice world as separate programs, and `stumble` as a user runs it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.warm_stumble import CommandResult, run_stumble

TASK = "refund-1"


Said = CommandResult


@dataclass(slots=True, kw_only=True)
class Shop:
    """A served order book and model, and a folder in which `stumble` is run."""

    folder: Path
    book: Path
    log: Path
    hosts: tuple[str, ...]
    task: str
    servers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def agent(self, model: str = "practice/retries", *more: str) -> tuple[str, ...]:
        """Return the practice agent's command; without the SDK, which takes longer to load than a
        run.
        """
        module = ("-m", "scenarios.practice.agents.openai_agent", self.task, "--model", model)
        needs_sdk = {"--sdk", "--stream", "--websocket"} & set(more)
        return (sys.executable, *module, *(() if needs_sdk else ("--sdk", "none")), *more)

    def world(self) -> tuple[str, ...]:
        """Options that reset and verify the order book."""
        script = f"{sys.executable} {Path(__file__).with_name('shop_world.py')}"
        where = f"{self.book} {self.task}"
        return ("--reset", f"{script} reset {where}", "--verify", f"{script} verify {where}")

    def by_state(self) -> tuple[str, ...]:
        """Options that reset the order book, and print its refunds for comparison."""
        script = f"{sys.executable} {Path(__file__).with_name('shop_world.py')}"
        where = f"{self.book} {self.task}"
        return ("--reset", f"{script} reset {where}", "--state", f"{script} refunds {where}")

    def reset(self) -> None:
        subprocess.run(self.world()[1].split(), check=True, timeout=30)

    def passed(self) -> bool:
        return subprocess.run(self.world()[3].split(), timeout=30).returncode == 0

    def stumble(
        self, *arguments: str, env: Mapping[str, str] | None = None, timeout: float = 200
    ) -> Said:
        given = self.environment() | dict(env or {})
        return run_stumble(arguments, cwd=self.folder, env=given, timeout=timeout)

    def environment(self) -> dict[str, str]:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI", "STUMBLE"))}
        store = str(self.folder / ".stumble")
        key = "sk-test-0123456789"
        return kept | {"HOME": str(home), "OPENAI_API_KEY": key, "STUMBLE_STORE": store}

    def host_options(self) -> tuple[str, ...]:
        return tuple(word for host in self.hosts for word in ("--host", host))

    def record(self, name: str = "a.tape", model: str = "practice/retries", *more: str) -> Said:
        self.reset()
        return self.stumble(
            "record", "-o", name, *self.host_options(), "--", *self.agent(model, *more)
        )

    def stop(self, name: str) -> None:
        _end(self.servers.pop(name))

    def asked(self) -> list[dict[str, Any]]:
        """Return the model server's log of requests so far."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@contextmanager
def shop(
    folder: Path, task: str = TASK, *provider: str, mcp: tuple[str, ...] | None = None
) -> Iterator[Shop]:
    """Serve the practice world for the block, over MCP too if `mcp` options are given."""
    # Outside of the agents' working folder, which a fork copies for each of them.
    served = folder.with_name(f"{folder.name}-served")
    served.mkdir()
    book, log = served / "shop.db", served / "model.jsonl"
    log.touch()
    tools = ("scenarios.practice.tool_server", "--db", str(book), "--task", task)
    model = ("scenarios.practice.model_server", "--log", str(log), *provider)
    with ExitStack() as stack:
        servers, hosts = {}, []
        programs = {"shop": tools, "model": model}
        if mcp is not None:
            programs["mcp"] = ("scenarios.practice.mcp_server", "--http", "--db", str(book), *mcp)
        for name, (module, *options) in programs.items():
            server = subprocess.Popen(
                [sys.executable, "-m", module, *options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            stack.callback(_end, server)
            assert server.stdout is not None
            port = server.stdout.readline().split()[-1].decode()
            servers[name] = server
            hosts.append(f"{name}.practice=127.0.0.1:{port}")
        yield Shop(
            folder=folder, book=book, log=log, hosts=tuple(hosts), task=task, servers=servers
        )


def _end(server: subprocess.Popen[bytes]) -> None:
    server.kill()
    server.wait(timeout=10)
    for pipe in (server.stdin, server.stdout):
        if pipe is not None:
            pipe.close()
