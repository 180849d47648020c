"""A tape or pack of somebody else is a program: it starts nothing until its user trusts it."""

import shlex
import sys
from collections.abc import Callable
from copy import replace
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stumble.cli.tape_path import WORLD_OPTIONS
from stumble.quickstart.packed_run import PACK
from tests.support.warm_stumble import CommandResult, run_stumble
from traces.model import Trajectory
from traces.tape.origin_mark import is_origin_mark, make_origin_mark

KEY = b"k" * 32
WORDS = st.text(max_size=8)
HEADS = st.builds(
    lambda id, command, workspace, snapshot: Trajectory(
        id=id, recorded_at=0.0, command=command, workspace=workspace, snapshot=snapshot
    ),
    WORDS,
    st.lists(WORDS, max_size=3).map(tuple),
    st.none() | WORDS,
    st.none() | WORDS,
)


@given(HEADS, HEADS)
def test_a_mark_is_that_of_one_command_folder_and_key(one: Trajectory, other: Trajectory) -> None:
    mark = make_origin_mark(one, KEY)
    assert is_origin_mark(mark, replace(one, agent="renamed", rules=("ignore:query.ts",)), KEY)
    assert is_origin_mark(mark, other, KEY) is (one == other)
    assert not is_origin_mark(mark, one, b"l" * 32)
    assert not is_origin_mark(None, one, KEY)


@dataclass(frozen=True, slots=True)
class User:
    """Somebody with a home, a key and a project of their own."""

    home: Path

    @property
    def project(self) -> Path:
        return self.home / "project"

    def run(self, *words: str) -> CommandResult:
        self.project.mkdir(parents=True, exist_ok=True)
        env = {
            "HOME": str(self.home),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "XDG_CACHE_HOME": str(self.home / "cache"),
        }
        return run_stumble(words, cwd=self.project, env=env, timeout=100)

    def count_runs(self) -> int:
        return len(list(self.project.glob(".stumble/tapes/*.tape")))


@pytest.fixture
def stranger(tmp_path: Path) -> User:
    user = User(tmp_path / "stranger")
    agent = (sys.executable, "-c", "print('the agent ran')")
    assert user.run("record", "-o", "../../a.tape", "--", *agent).code == 0
    return user


@pytest.fixture
def me(tmp_path: Path) -> User:
    return User(tmp_path / "me")


TAPE = "../../a.tape"


def test_a_strangers_tape_runs_once_it_is_trusted(stranger: User, me: User) -> None:
    given = (Path(stranger.project) / TAPE).resolve()
    refused = me.run("replay", TAPE, "--in-place")
    assert refused.code == 2
    assert "the agent ran" in refused.err
    assert sha256(given.read_bytes()).hexdigest()[:32] in refused.err
    assert me.count_runs() == 0
    trusted = me.run("replay", TAPE, "--in-place", "--trust")
    assert (trusted.code, trusted.out) == (0, "the agent ran\n")
    assert "the agent ran" in trusted.err
    again = me.run("replay", TAPE, "--in-place")
    assert (again.code, again.out) == (0, "the agent ran\n")
    assert "trusted" not in again.err


def test_a_hash_in_the_project_file_is_trust(stranger: User, me: User) -> None:
    tape = (stranger.project / TAPE).resolve()
    me.project.mkdir(parents=True)
    digest = sha256(tape.read_bytes()).hexdigest()
    (me.project / "stumble.toml").write_text(f'[trust]\nhashes = ["{digest}"]\n')
    assert me.run("replay", TAPE, "--in-place").out == "the agent ran\n"
    with tape.open("ab") as file:
        file.write(b"\0")
    assert me.run("replay", TAPE, "--in-place").code == 2
    (me.project / "stumble.toml").write_text('[trust]\nhashes = ["all"]\n')
    assert me.run("replay", TAPE, "--in-place").code == 2


def test_what_was_recorded_here_runs_without_a_question(stranger: User) -> None:
    for number in range(2):
        ran = stranger.run("replay", TAPE, "--in-place")
        assert (ran.code, ran.out) == (0, "the agent ran\n")
        (stranger.project / ".stumble").rename(stranger.home / f"old store {number}")
    assert stranger.run("scrub", TAPE, "-o", "../../b.tape").code == 0
    assert stranger.run("replay", "../../b.tape", "--in-place").code == 0


def test_a_rewritten_tape_of_a_stranger_stays_one(stranger: User, me: User) -> None:
    assert me.run("scrub", TAPE, "-o", "../../b.tape").code == 0
    assert me.run("pack", "../../b.tape", "-o", "../../b.stumble").code == 0
    for name in ("b.tape", "b.stumble"):
        assert "was not recorded here" in me.run("replay", f"../../{name}", "--in-place").err


def test_with_a_command_of_ones_own_nothing_of_the_tape_runs(stranger: User, me: User) -> None:
    own = (sys.executable, "-c", "print('mine')")
    assert me.run("replay", TAPE, "--in-place", "--", *own).out == "mine\n"
    copy = me.run("replay", TAPE, "--", *own)
    assert copy.code == 2
    assert "copy of" in copy.err  # the files would be the stranger's


COMMANDS: dict[str, Callable[[str], tuple[str, ...]]] = {
    "replay": lambda tape: ("replay", tape),
    "fork": lambda tape: ("fork", tape, "--fault", "digit"),
    "run": lambda tape: ("run", "lost-ack-on-refund", "--tape", tape),
    "campaign": lambda tape: ("campaign", "--in-place", "--traces", tape, "--fault", "digit"),
    "accept": lambda tape: ("accept", tape, "--record"),
    "shrink": lambda tape: ("shrink", tape, "--recording", tape, "--verify", "true"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_starts_an_agent_asks(command: str, stranger: User, me: User) -> None:
    ran = me.run(*COMMANDS[command](TAPE))
    assert ran.code == 2
    assert "was not recorded here" in ran.err
    assert "the agent ran" in ran.err
    assert me.count_runs() == 0


@pytest.mark.parametrize("option", WORLD_OPTIONS)
def test_world_commands_of_a_pack_need_trust(option: str, stranger: User, me: User) -> None:
    bad = shlex.join(("touch", str(stranger.home / "bad")))
    packed = stranger.run("pack", TAPE, "-o", "../../a.stumble", f"--{option}", bad)
    assert packed.code == 0, packed.err
    fork = ("fork", "../../a.stumble", "--fault", "digit")
    assert "was not recorded here" not in stranger.run(*fork).err  # packed here
    refused = me.run(*fork)
    assert refused.code == 2
    assert f"{option}" in refused.err
    assert bad in refused.err
    replaced = me.run(*fork, f"--{option}", "true")
    assert bad not in replaced.err


def test_ones_own_tape_in_the_pack_of_a_stranger_needs_trust(stranger: User, me: User) -> None:
    agent = (sys.executable, "-c", "print('mine')")
    assert me.run("record", "--no-snapshot", "-o", "../../mine.tape", "--", *agent).code == 0
    plan = ("--reset", "touch bad")
    assert stranger.run("pack", "../../mine.tape", "-o", "../../mine.stumble", *plan).code == 0
    assert "touch bad" in me.run("fork", "../../mine.stumble", "--fault", "digit").err
    assert "not recorded here" not in me.run("replay", "../../mine.stumble").err


def test_the_pack_that_stumble_ships_is_trusted(me: User) -> None:
    assert "was not recorded here" not in me.run("replay", str(PACK)).err
