"""A folder from which agents are checked, with a clinic that they use."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.servers.booking_clinic import BookingClinic, serve_booking_clinic
from tests.support.warm_stumble import CommandResult, run_stumble

AGENTS = Path(__file__).parent / "agents" / "booking"
CURL_AGENT = str(AGENTS / "curl_agent.sh")


@dataclass(frozen=True, slots=True)
class CheckedFolder:
    """A folder, its store, and the clinic."""

    folder: Path
    url: str
    clinic: BookingClinic

    @property
    def env(self) -> dict[str, str]:
        """The environment of commands: a home and a store of their own."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        store, browser = str(self.folder / "store"), f"{self.browser} %s"
        return os.environ | {"HOME": str(home), "STUMBLE_STORE": store, "BROWSER": browser}

    @property
    def browser(self) -> Path:
        """A program that opens an address by writing it into the file `opened`."""
        program = self.folder / "browser"
        program.write_text(f'#!/bin/sh\necho "$1" > {self.folder / "opened"}\n')
        program.chmod(0o755)
        return program

    @property
    def work(self) -> Path:
        """The folder in which agents are checked."""
        work = self.folder / "work"
        work.mkdir(exist_ok=True)
        return work

    def stumble(self, *arguments: str) -> CommandResult:
        """Run a command of stumble there."""
        return run_stumble(arguments, cwd=self.work, env=self.env, timeout=400)

    def check(self, command: tuple[str, ...], *options: str) -> CommandResult:
        """Check an agent."""
        return self.stumble("check", "--json", *options, "--", *command)

    def interrupt(
        self,
        command: tuple[str, ...],
        *options: str,
        after: str,
        before: Callable[[], object] = lambda: None,
    ) -> CommandResult:
        """Check an agent, and press Ctrl-C after the first line with this text, and `before`."""
        words = (sys.executable, "-m", "stumble", "check", "--json", *options, "--", *command)
        with subprocess.Popen(
            words,
            cwd=self.work,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            assert process.stderr is not None
            lines = [next(line for line in process.stderr if after in line)]
            before()
            os.killpg(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=120)
        return CommandResult(code=process.returncode, out=out, err="".join(lines) + err)

    def curl_agent(self, habit: str) -> tuple[str, ...]:
        """Return the command of the agent of bash, curl and jq with a model of this habit."""
        return "bash", CURL_AGENT, f"{self.url}/{habit}"


@contextmanager
def open_checked_folder(folder: Path) -> Iterator[CheckedFolder]:
    """Serve a clinic for the block."""
    with serve_booking_clinic() as (url, clinic):
        yield CheckedFolder(folder, url, clinic)
