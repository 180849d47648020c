"""How an agent is started: cold, as its own command, or warm, forked from a loaded process."""

import asyncio
import itertools
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from copy import replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from recorder.agent.agent_input import PipedInput
from recorder.agent.isolation import AgentIsolation
from recorder.agent.process import AgentExit, AgentStreams, run_agent_process
from recorder.agent.terminal import AgentTerminal, Progress
from stumble.errors import UsageError
from stumble.user_data.known_secrets import find_known_secrets
from traces.conversation.tracker import ConversationTap
from traces.redaction.redacted_log import redact_file_end
from traces.tape.reader import Tape

if TYPE_CHECKING:
    from stumble.runs.types import AgentLauncher

PRINTED_KEPT = 8000
"""Most bytes kept of what an agent printed."""
WARM_EXIT_SECONDS = 10.0
"""Seconds a warm process gets to end after its input was closed."""


class ColdLauncher(Struct, frozen=True, kw_only=True):
    """Starts the agent's own command as a new process each time."""

    command: tuple[str, ...]
    cwd: Path | None = None
    budget: float | None = None
    output: Path | None = None
    """A file for what it prints; None passes it through."""
    is_shown: bool = False
    """Whether the end of that is printed when the run is over."""
    patience: float | None = None
    """Seconds that it may go on after a signal to end; None is no limit."""
    prefix: tuple[str, ...] = ()
    """Words before the absolute program, which mount the task's folders."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables in addition to those of the run."""
    warm: bool = False
    input: PipedInput | AgentTerminal | None = None
    """Its standard input; None passes that of this process through."""

    async def __call__(
        self,
        env: Mapping[str, str],
        *,
        command: tuple[str, ...] | None = None,
        cage: AgentIsolation | None = None,
        cwd: Path | None = None,
    ) -> AgentExit:
        start = self.output.stat().st_size if self.output and self.output.exists() else 0
        with ExitStack() as files:
            if self.output is not None:
                files.enter_context(redacted_output(self.output))
            out = files.enter_context(self.output.open("ab")) if self.output else None
            env = {**env, **self.env}
            streams = AgentStreams(stdout=out, stderr=out)
            if self.input is not None:
                streams = files.enter_context(self.input.open_streams(out))
            exit = await run_agent_process(
                self._add_prefix(command or self.command, env),
                env=env,
                cwd=cwd or self.cwd,
                budget=self.budget,
                patience=self.patience,
                streams=streams,
                cage=cage,
            )
        if self.output is None:
            return exit
        exit = replace(exit, printed=_read_end(self.output, start))
        if self.is_shown:
            sys.stdout.write(exit.printed)
        return exit

    def _add_prefix(self, command: tuple[str, ...], env: Mapping[str, str]) -> tuple[str, ...]:
        """Return the command with the prefix; unchanged without a prefix or such a program."""
        program = shutil.which(command[0], path=env.get("PATH", os.defpath))
        if not self.prefix or program is None:
            return command
        return (*self.prefix, str(Path(program).absolute()), *command)


def _read_end(path: Path, start: int) -> str:
    """Return the last PRINTED_KEPT bytes of what was appended to a file after `start`."""
    with path.open("rb") as file:
        file.seek(max(start, file.seek(0, os.SEEK_END) - PRINTED_KEPT))
        return file.read().decode("utf-8", "replace")


@contextmanager
def redacted_output(path: Path) -> Iterator[None]:
    """Replace the secrets in what is appended to a file in the block, when the block is over."""
    start = path.stat().st_size if path.exists() else 0
    try:
        yield
    finally:
        if path.is_file():
            redact_file_end(path, start, secrets=find_known_secrets())


def with_recorded_input(
    launch: "AgentLauncher", recording: Tape, watch: ConversationTap
) -> "AgentLauncher":
    """Return the launcher with the standard input of the recording, if that has one.

    What was typed follows the conversation that `watch` sees. UsageError if not all was kept.
    """
    given = recording.input
    if given is None or not isinstance(launch, ColdLauncher):
        return launch
    if given.unplayable is not None:
        raise UsageError(given.unplayable)
    if given.terminal is None:
        return replace(launch, input=PipedInput(data=given.data))
    from recorder.agent.typed_input import PlayedTerminal

    played = PlayedTerminal(given)
    follow_conversation(played, watch)
    return replace(launch, input=played, env={**launch.env, "TERM": given.terminal})


def follow_conversation(terminal: AgentTerminal, watch: ConversationTap) -> None:
    """Let a terminal know how far the conversation is that `watch` sees."""
    terminal.measure_progress = lambda: Progress(
        steps=watch.conversations.steps,
        exchanges=watch.requests,
        is_answering=watch.is_answering,
    )


class WarmAgentProcess:
    """A process that has loaded an agent and forks a child per run, by JSON lines on its pipes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[int]] = {}
        self._reader = asyncio.create_task(self._read_results())

    async def _read_results(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            document = json.loads(line)
            self._waiting.pop(document["id"]).set_result(document["exit"])
        for waiting in self._waiting.values():
            waiting.set_exception(RuntimeError("the warm agent process ended"))

    async def start(
        self, argv: tuple[str, ...], env: Mapping[str, str], output: Path, budget: float | None
    ) -> AgentExit:
        """Run the agent once, with its output in a file."""
        assert self._process.stdin is not None
        id = next(self._ids)
        self._waiting[id] = asyncio.get_running_loop().create_future()
        ended = self._waiting[id]
        order = {
            "id": id,
            "argv": list(argv),
            "env": dict(env),
            "cwd": str(Path.cwd()),
            "stdout": str(output),
            "stderr": str(output),
        }
        self._send_order(order)
        try:
            return AgentExit(code=await asyncio.wait_for(asyncio.shield(ended), budget))
        except TimeoutError:
            self._send_order({"kill": id})
            return AgentExit(code=await ended, out_of_budget=True)

    def _send_order(self, order: Mapping[str, object]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")

    async def close(self) -> None:
        """End the process and all its children."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), WARM_EXIT_SECONDS)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._reader


@asynccontextmanager
async def start_warm_agent(module: str) -> AsyncIterator[WarmAgentProcess]:
    """Start a warm process of `python -m MODULE --warm`."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        "--warm",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for us: it ends when its input does
    )
    held = WarmAgentProcess(process)
    try:
        yield held
    finally:
        await held.close()


class WarmLauncher(Struct, frozen=True, kw_only=True):
    """One agent command, run by forking the warm process."""

    process: WarmAgentProcess
    command: tuple[str, ...]
    argv: tuple[str, ...]
    output: Path
    budget: float | None = 60.0
    warm: bool = True
    cwd: Path | None = None

    async def __call__(
        self,
        env: Mapping[str, str],
        *,
        command: tuple[str, ...] | None = None,
        cage: AgentIsolation | None = None,
        cwd: Path | None = None,
    ) -> AgentExit:
        """Run the agent once. Raises ValueError for `cage` or `cwd`: a fork cannot be isolated."""
        if cage is not None or cwd is not None:
            raise ValueError("a warm agent runs where its process was started")
        return await self.process.start(self.argv, env, self.output, self.budget)
