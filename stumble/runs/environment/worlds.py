"""Worlds from the command line, and whose turn it is to use one.

A world behind commands serves one run at a time, also across processes, folders and stores. Locks
are held from the reset to the verdict: one for each address in the command that sets the world
back, else one for that command. A world that lies in the run's own copy of the folder needs none.
"""

import asyncio
import fcntl
import os
import re
import shlex
import shutil
import stat
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from scenarios.effect_ledger import DEFAULT_KEY, EffectLedger, is_ledger_address
from scenarios.world import CommandWorld, World
from stumble.errors import UsageError
from stumble.notices import print_notice

WORKSPACE_SLOT = "{workspace}"
"""In a command of the world: the folder in which this run works."""
FRESH_COPY_RESET = f"true {WORKSPACE_SLOT}"
"""Resets a world that is in the run's copy of the folder, which is fresh: nothing is left to do."""
LOCK_POLL_SECONDS = 0.05
"""Seconds between two tries to get a world."""
_LOCK_BASE = Path("/tmp")
WAIT_NOTICE_SECONDS = 5.0
"""Seconds after which it is said that a run waits."""


class WorldCommands(NamedTuple):
    """A user's commands for a world, each in shell words, or None."""

    reset: str | None = None
    verify: str | None = None
    state: str | None = None
    ledger: str | None = None
    """Lists committed effects: a command or an HTTP address."""
    ledger_key: str | None = None
    """Members that identify an effect, separated by commas."""

    def with_defaults_from(self, other: "WorldCommands") -> "WorldCommands":
        """Return these commands, with those of `other` for the missing ones."""
        return WorldCommands(
            self.reset or other.reset,
            self.verify or other.verify,
            self.state or other.state,
            *((self if self.ledger else other)[3:]),
        )

    def make_world(
        self,
        answer: str | None = None,
        filled: Mapping[str, str] | None = None,
        *,
        has_fresh_copy: bool = False,
    ) -> World | None:
        """Return the world behind these commands; None if neither they nor `answer` are given.

        `answer` is the expected final answer, which is judged if there is no `verify`. `filled`
        gives the values of `{slot}` and `{port}` in the commands, one set for each of several
        worlds. Raises UsageError for a command that cannot be parsed, and without `reset`, unless
        each run has a fresh copy of its folder.
        """
        if self == WorldCommands() and answer is None:
            return None
        if self.reset is None and not has_fresh_copy:
            names = ("verify", "state", "ledger", "ledger_key")
            given = next((name for name in names if getattr(self, name) is not None), None)
            option = f"--{given.replace('_', '-')}" if given else "the expected answer"
            raise UsageError(
                f"{option} needs --reset, or runs in a fresh copy: a verdict means nothing on a "
                "used world"
            )
        world = CommandWorld(
            _parse_world_command("--reset", self.reset or "true"),
            _parse_world_command("--verify", self.verify) if self.verify else (),
            answer=answer or "",
            state_command=_parse_world_command("--state", self.state) if self.state else (),
            ledger=self._make_ledger(),
        )
        return world.with_values(filled) if filled else world

    def _make_ledger(self) -> EffectLedger | None:
        if self.ledger is None:
            if self.ledger_key is not None:
                raise UsageError("--ledger-key needs --ledger, which lists the effects")
            return None
        key = tuple(filter(None, map(str.strip, (self.ledger_key or "").split(","))))
        source = (
            (self.ledger,)
            if is_ledger_address(self.ledger)
            else _parse_world_command("--ledger", self.ledger)
        )
        return EffectLedger(source, key or DEFAULT_KEY)


def _parse_world_command(option: str, text: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"{option} {text!r}: {error}") from None
    if not words or shutil.which(words[0]) is None:
        raise UsageError(f"{option} {text!r}: no such command")
    return words


def is_world_in_workspace(world: World | None) -> bool:
    """Return whether the world's files are in the run's folder, so that each copy has its own."""
    return isinstance(world, CommandWorld) and any(WORKSPACE_SLOT in w for w in world.reset_command)


def name_world(world: CommandWorld, folder: Path) -> list[str]:
    """Return names that all runs on one world share, however it is judged, in a fixed order.

    Each address is a name. Without any the command is one, together with the folder in which it
    runs, unless it names a file by its absolute path: `make reset` is another world elsewhere.
    """
    words = world.reset_command
    addresses = {_normalize_address(each) for word in words for each in _ADDRESS.findall(word)}
    if addresses:
        return sorted(map(_hash_name, addresses))
    fixed = any(Path(word).is_absolute() for word in words[1:])
    return [_hash_name("\0".join(words if fixed else (str(folder), *words)))]


_ADDRESS = re.compile(r"\b\w[\w+.-]*://(?:[^/?#\s'\"@]*@)?(\[[^\]]*\]:\d+|[^/?#\s'\"]+:\d+)")
"""Host and port in a URL."""
_LOOPBACK = re.compile(r"\A(?:localhost|127(?:\.\d+){3}|0\.0\.0\.0|\[::1?\]):")


def _normalize_address(address: str) -> str:
    return _LOOPBACK.sub("localhost:", address.lower())


def _hash_name(name: str) -> str:
    return blake2b(name.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


@asynccontextmanager
async def lock_world(
    world: World | None,
    folder: Path | None = None,
    *,
    say: Callable[[str], object] = print_notice,
    after: float = WAIT_NOTICE_SECONDS,
) -> AsyncIterator[None]:
    """Wait for a world behind commands and keep all other runs from it; any other world is free.

    `folder` is where its commands run; None is here. It is free again when its holder dies.
    """
    if not isinstance(world, CommandWorld):
        yield
        return
    place = _make_lock_folder()
    with ExitStack() as held:
        for name in name_world(world, folder or Path.cwd()):
            file = held.enter_context((place / name).open("a"))
            began, told = time.monotonic(), False
            while not _try_lock(file.fileno()):
                if not told and time.monotonic() - began >= after:
                    say(f"waiting: another run uses this world ({shlex.join(world.reset_command)})")
                    told = True
                await asyncio.sleep(LOCK_POLL_SECONDS)
        yield


def _try_lock(number: int) -> bool:
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _make_lock_folder() -> Path:
    """A folder of this user's, the same for all stores, processes and logins.

    Neither `TMPDIR` nor `XDG_RUNTIME_DIR` decides: a job of cron has others than a shell. Raises
    UsageError if another user made it, who could place links in it.
    """
    base = _LOCK_BASE if os.access(_LOCK_BASE, os.W_OK) else Path(tempfile.gettempdir())
    folder = base / f"stumble-worlds-{os.geteuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode):
        raise UsageError(f"{folder} is another user's, and locks of worlds lie there: remove it")
    return folder
