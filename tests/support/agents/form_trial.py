"""Everything a user does with one agent in one form: each stage gives the words of its cell.

A stage that went as it ought to has plain words; one that did not begins with FAILED.
"""

import datetime
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from scenarios.practice.tasks.shell import verify_shell_task, write_start_files
from tests.agents import LOCKS, environment
from tests.support.agents.client_table import YEAR_DAYS
from tests.support.agents.client_trial import DAY_SECONDS, ZONE
from tests.support.agents.client_versions import find_version
from tests.support.agents.daily_agents import DAILY, DONE, DailyAgent
from tests.support.agents.form_rows import FormRow
from tests.support.agents.third_party_agents import (
    HOSTS,
    NAMES,
    SIDE_HOSTS,
    TASK,
    certificate,
)
from tests.support.practice_shop import Said, Shop, shop
from tests.support.terminal_user import TerminalUser
from traces.conversation.derived_steps import derive_tape_steps
from traces.tape.reader import read_tape

FORMS = ("argument", "pipe", "terminal")
PROMPT = " ".join(TASK.prompt.split())
"""One line, as a terminal takes an end of line for the end of the task."""
RUN_LIMIT = 240.0
FAULTS = {
    "loud": ("http_status:code=503", {"recovered"}),
    "quiet": ("digit", {"silent_wrong"}),
}
"""Each with the outcomes that follow from the model: it repeats what failed, and checks nothing."""


@dataclass(slots=True, kw_only=True)
class FormTrial:
    """One agent in one form, in a folder with files and in front of a provider."""

    shop: Shop
    agent: DailyAgent
    form: str
    ca: Path

    @property
    def folder(self) -> Path:
        return self.shop.folder / "work"

    @property
    def tape(self) -> Path:
        return self.shop.folder / "a.tape"

    @property
    def home(self) -> Path:
        return self.shop.folder / "home"

    def command(self) -> tuple[str, ...]:
        """The agent's command."""
        words = self.agent.command(self.form, PROMPT)
        return tuple(word.replace("{home}", str(self.home)) for word in words)

    def hosts(self) -> Iterator[str]:
        """Options that lead the agent's hosts to the provider."""
        port = self.shop.hosts[1].rpartition(":")[2]
        for host in (*HOSTS, *SIDE_HOSTS):
            yield from ("--host", f"{host}=127.0.0.1:{port}")

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """The user's variables: a home folder, a key, an authority of certificates."""
        env = self.shop.environment()
        kept = {k: v for k, v in env.items() if not k.startswith("ANTHROPIC")}
        del kept["STUMBLE_STORE"]
        if (LOCKS / f"{self.agent.home}.txt").exists():
            kept["PATH"] = f"{environment(self.agent.home).parent}{os.pathsep}{kept['PATH']}"
        kept |= {"SSL_CERT_FILE": str(self.ca), "XDG_DATA_HOME": str(self.shop.folder / "data")}
        kept |= {"PWD": str(self.folder), "TERM": "xterm-256color"}
        return kept | dict(self.agent.env) | dict(more)

    def lay_out_files(self) -> None:
        """Leave only the files that the task begins with, and the store."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in self.folder.iterdir():
            if path.name != ".stumble":
                path.unlink()
        write_start_files(self.folder, TASK)

    def freshen_home(self) -> None:
        """Leave only the files that the user configured, but for an agent with later starts."""
        if self.agent.differs_at_first and self.home.exists():
            return
        shutil.rmtree(self.home, ignore_errors=True)
        for name, text in self.agent.files.items():
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("{folder}", str(self.folder)))

    def stumble(self, command: str, *words: str, more: Mapping[str, str] | None = None) -> Said:
        """Run a command, with the task on standard input if that is the form."""
        self.freshen_home()
        piped = self.form == "pipe" and command == "record"
        done = subprocess.run(
            [sys.executable, "-m", "stumble", command, *words],
            input=PROMPT if piped else "",
            capture_output=True,
            text=True,
            errors="replace",
            cwd=self.folder,
            env=self.environment(more or {}),
            timeout=RUN_LIMIT * (4 if command == "fork" else 1),
        )
        return Said(code=done.returncode, out=done.stdout, err=done.stderr)

    def type_task(self, *words: str) -> Said:
        """Record at a terminal: answer what it asks at first, give the task, and leave."""
        self.freshen_home()
        command = (sys.executable, "-m", "stumble", "record", *words)
        user = TerminalUser(command, self.folder, self.environment({}))
        user.resize(40, 120)
        user.cursor = b"\x1b[2;1R" if self.agent.asks_cursor else b""
        try:
            self._converse(user)
        except AssertionError:
            user.close()
            raise
        code = user.wait(RUN_LIMIT)
        return Said(code=code, out="", err=user.screen.decode(errors="replace"))

    def _converse(self, user: TerminalUser) -> None:
        agent = self.agent
        for text, keys in agent.dialogs:
            user.wait_for_pattern(text, 90)
            user.type_line(keys[:-1], keys[-1:])
        user.wait_for_pattern(agent.ready, 90)
        user.type_line(PROMPT.encode(), agent.enter, echo="work-stock")
        user.wait_for_pattern(DONE, RUN_LIMIT)
        if agent.leave:
            user.type_line(agent.leave, agent.enter, echo=agent.leave.decode())
            user.rest(quiet=3)
            user.send_if_open(agent.enter)  # the first may have chosen a completion


def try_form(folder: Path, name: str, form: str, clock: Path) -> FormRow:
    """Record, fork and replay an agent in a form; `clock` is the library that shifts time."""
    with open_trial(folder, name, form) as trial:
        record = _attempt(_record, trial)
        cells = dict.fromkeys(("loud", "quiet", "zone", "later"), "not tried")
        if "FAILED" not in record:
            for fault in FAULTS:
                cells[fault] = _attempt(_fork, trial, fault)
            trial.shop.stop("model")
            cells["zone"] = _attempt(_replay, trial, ZONE)
            cells["later"] = _attempt(_replay_later, trial, clock)
    version = find_version(trial.agent.home, trial.agent.package)
    today = f"{datetime.date.today():%Y-%m-%d}"
    return FormRow(client=name, version=version, tried=today, form=form, record=record, **cells)


@contextmanager
def open_trial(folder: Path, name: str, form: str) -> Iterator[FormTrial]:
    """Serve a provider whose models repeat what failed, and lay out the files of the task."""
    ca, pem = certificate()
    names = [word for each in NAMES for word in ("--name", f"{each}=practice/retries")]
    with shop(folder, "refund-1", "--tls", str(pem), *names) as opened:
        trial = FormTrial(shop=opened, agent=DAILY[name], form=form, ca=ca)
        trial.lay_out_files()
        yield trial


def failed_cells(row: FormRow) -> list[str]:
    """The cells of the stages that failed."""
    cells = (row.record, row.zone, row.later, row.loud, row.quiet)
    return [cell for cell in cells if "FAILED" in cell]


def _attempt[*Args](stage: Callable[[*Args], str], *given: *Args) -> str:
    try:
        return stage(*given)
    except subprocess.TimeoutExpired:
        return "FAILED: did not end in time"
    except AssertionError as error:
        return f"FAILED: {_to_cell(str(error))}"


def _to_cell(text: str) -> str:
    """The last line of a text, as short as a cell."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    return lines[-1].replace("|", "/")[:400]


def _failed(said: Said, why: str) -> str:
    return f"FAILED: {why}: {_to_cell(said.err)}"


def _record(trial: FormTrial) -> str:
    words = ("-o", str(trial.tape), *trial.hosts(), "--", *trial.command())
    run = trial.type_task if trial.form == "terminal" else partial(trial.stumble, "record")
    if trial.agent.differs_at_first:
        run("--times", "1", *words)
        trial.tape.unlink(missing_ok=True)
        trial.lay_out_files()
    said = run(*words)
    if said.code:
        return _failed(said, f"exit code {said.code}")
    if not verify_shell_task(trial.folder, TASK).passed:
        return _failed(said, "the task was not done")
    kinds = [each.kind for each in derive_tape_steps(read_tape(trial.tape)).contexts.values()]
    return f"{kinds.count('model')} model calls"


def _read_json(said: Said) -> dict[str, Any] | None:
    lines = [line for line in said.out.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else None


def _fork(trial: FormTrial, fault: str) -> str:
    """Change the second result of the shell, once: loudly, or by a digit."""
    operator, expected = FAULTS[fault]
    total = TASK.files["stock.txt"].split()[-1]
    where = ("--at", "model-boundary", "--where", f"tool={trial.agent.tool}", "--nth", "2")
    judged = ("--verify", f"grep -q {total} stock.txt", "--json")
    hosts = tuple(trial.hosts())
    result = trial.stumble("fork", str(trial.tape), "--fault", operator, *where, *judged, *hosts)
    found = _read_json(result)
    if found is None:
        return _failed(result, f"exit code {result.code}")
    outcome = str(found.get("outcome"))
    if outcome in expected:
        return outcome
    passed = [twin["passed"] for twin in found["twins"]]
    why = found["diverged"] or f"clean twins passed: {passed}"
    return f"FAILED: {outcome}: {_to_cell(str(why))}"


def _replay(trial: FormTrial, more: Mapping[str, str]) -> str:
    result = trial.stumble("replay", str(trial.tape), "--json", more=more)
    found = _read_json(result)
    if result.code or found is None:
        why = _to_cell(str(found["diverged"])) if found else _to_cell(result.err)
        return f"FAILED: exit code {result.code}: {why}"
    return f"{found['answered']} answered"


def _replay_later(trial: FormTrial, clock: Path) -> str:
    """A statically linked program loads no library, so its clock cannot be shifted."""
    program = trial.command()[0]
    with Path(shutil.which(program, path=trial.environment({})["PATH"]) or program).open("rb") as f:
        head = f.read(1 << 16)
    if head.startswith(b"\x7fELF") and b"ld-linux" not in head:
        return f"not tried (linked statically); again {_replay(trial, {})}"
    shift = {"LD_PRELOAD": str(clock), "SHIFT_SECONDS": str(YEAR_DAYS * DAY_SECONDS)}
    return _replay(trial, shift)
