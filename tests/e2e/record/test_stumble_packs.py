"""Packs as users exchange them: made by one, replayed and forked by another who has nothing else.

The other user has another uid, and a mount namespace in which the first one's folder is empty.
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import pytest

from tests.support.servers.scripted_model import Script, serving
from traces.tape.reader import read_tape

pytestmark = pytest.mark.programs

AGENT = """
import json, os, sys, urllib.request
from pathlib import Path

def ask(said):
    body = json.dumps({"model": "gpt-4o", "input": said, "stream": True}).encode()
    headers = {"content-type": "application/json"}
    wanted = urllib.request.Request("http://model.test/v1/responses", body, headers)
    with urllib.request.urlopen(wanted, timeout=20) as answer:
        lines = answer.read().decode().splitlines()
    return json.loads(lines[-2].removeprefix("data: "))["response"]["output"][0]

place = os.getcwd(), str(Path(__file__).parent), os.environ["PWD"]
talk = [{"role": "user", "content": f"in {place}: what does order 7 cost?"}]
call = ask(talk)
price = json.dumps({"order": "7", "price": int(Path("price.txt").read_text())})
told = {"type": "function_call_output", "call_id": call["call_id"], "output": price}
ask([*talk, call, told])
Path("world.txt").open("a").write("looked up\\n")
os.environ.get("REFUND_LIMIT")
"""
WORLD = """
import sys
from pathlib import Path
book = Path("world.txt")
if sys.argv[1] == "reset":
    book.write_text("")
raise SystemExit(book.read_text() not in ("", "looked up\\n"))
"""
OTHER = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
ROOT = Path(__file__).resolve().parents[3]


def show_programs(aside: Path) -> str:
    """Return the shell commands that let any user reach Python and stumble, as on most machines."""
    lines = []
    for number, path in enumerate((Path(sys.base_prefix), Path(sys.prefix), ROOT)):
        closed = [each for each in path.parents if not each.stat().st_mode & 0o001]
        if not closed:
            continue
        kept, cover = shlex.quote(str(aside / str(number))), shlex.quote(str(closed[-1]))
        there = shlex.quote(str(path))
        lines += [
            f"mkdir -p {kept}; mount --bind {there} {kept}",
            f"mount -t tmpfs -o mode=755 none {cover}; mkdir -p {there}",
            f"mount --bind {kept} {there}",
        ]
    return "; ".join((*lines, "true"))


@dataclass(frozen=True, slots=True)
class TwoUsers:
    """The folders of two users, and the model that both may ask."""

    above: Path
    model: str

    @property
    def first(self) -> Path:
        return self.above / "first"

    @property
    def other(self) -> Path:
        return self.above / "other"

    def stumble(self, *words: str, other: bool = False) -> subprocess.CompletedProcess[str]:
        home = self.other if other else self.first
        unset = ("STUMBLE", "XDG", "OPENAI")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(unset)}
        env = kept | {"HOME": str(home / "home"), "TMPDIR": str(home / "tmp")}
        command = [sys.executable, "-m", "stumble", *words]
        if other:
            hide = f"mount -t tmpfs -o mode=700 none {shlex.quote(str(self.first))}"
            run = shlex.join((*OTHER, *command))
            script = f"{hide}; {show_programs(self.above / 'programs')}; exec {run}"
            command = ["unshare", "--mount", "sh", "-ec", script]
        cwd = home if other else home / "work"
        env["PWD"] = str(cwd)
        return subprocess.run(
            command, capture_output=True, text=True, cwd=cwd, env=env, timeout=200
        )

    def pack(self, *more: str) -> Path:
        result = self.stumble("pack", "../a.tape", "-o", str(self.above / "a.stumble"), *more)
        assert result.returncode == 0, result.stderr
        return self.above / "a.stumble"


@pytest.fixture(scope="module")
def users() -> Iterator[TwoUsers]:
    with (
        TemporaryDirectory(prefix="s-") as short,
        serving(Script(tool="get_order", arguments={"order_id": "7"})) as url,
    ):
        above = Path(short)
        above.chmod(0o755)
        for user in ("first", "other"):
            for name in ("home", "tmp", "work"):
                (above / user / name).mkdir(parents=True)
        subprocess.run(["chown", "-R", "65534:65534", above / "other"], check=True)
        work = above / "first" / "work"
        (work / "agent.py").write_text(AGENT)
        (work / "world.py").write_text(WORLD)
        (work / "price.txt").write_text("4312")
        (work / "world.txt").write_text("")
        found = TwoUsers(above, urlsplit(url).netloc)
        agent = (sys.executable, str(work / "agent.py"))  # by its absolute path
        host = f"model.test={found.model}"
        result = found.stumble("record", "-o", "../a.tape", "--host", host, "--", *agent)
        assert result.returncode == 0, result.stderr
        yield found


@pytest.fixture(scope="module")
def packed(users: TwoUsers) -> Path:
    world = [f"{shlex.quote(sys.executable)} world.py {verb}" for verb in ("reset", "verify")]
    plan = ("--fault", "digit", "--where", "tool=get_order", "--seed", "3")
    return users.pack("--reset", world[0], "--verify", world[1], *plan)


def test_another_user_replays_it_with_the_same_bytes(users: TwoUsers, packed: Path) -> None:
    result = users.stumble(
        "replay", str(packed), "--isolation", "require", "--json", "--trust", other=True
    )
    assert result.returncode == 0, result.stderr + result.stdout
    replay = json.loads(result.stdout)
    assert replay["in_place"] is None
    assert replay["isolated"]
    assert replay["mapped"] is None
    tape = Path(replay["tape"])
    assert tape.is_relative_to(users.other)
    assert tape.stat().st_uid == 65534
    recorded, again = read_tape(users.first / "a.tape"), read_tape(tape)
    assert again.trajectory.parent == recorded.trajectory.id
    for one, two in zip(recorded.exchanges, again.exchanges, strict=True):
        assert one.request.body == two.request.body
        assert one.response is not None
        assert two.response is not None
        assert one.response.body == two.response.body


def test_another_user_forks_it_with_the_same_verdict(users: TwoUsers, packed: Path) -> None:
    host = ("--host", f"model.test={users.model}", "--json")
    plan = ("--fault", "digit", "--where", "tool=get_order", "--seed", "3")
    world = [f"{shlex.quote(sys.executable)} world.py {verb}" for verb in ("reset", "verify")]
    result = users.stumble(
        "fork", "../a.tape", *plan, "--reset", world[0], "--verify", world[1], *host
    )
    theirs = users.stumble("fork", str(packed), *host, "--trust", other=True)
    assert (result.returncode, theirs.returncode) == (0, 0), theirs.stderr
    [mine], [yours] = (json.loads(each.stdout)["faulted"] for each in (result, theirs))
    for key in ("outcome", "consumed", "noticed", "passed", "baseline_valid", "claim"):
        assert mine[key] == yours[key], key
    assert mine["outcome"] is not None
    [one], [two] = (read_tape(Path(each["tape"])).injections for each in (mine, yours))
    assert (one.original, one.mutated) == (two.original, two.mutated)


def test_doctor_names_what_another_machine_lacks(users: TwoUsers, packed: Path) -> None:
    result = users.stumble("doctor", str(packed), "--json", other=True)
    assert result.returncode == 1
    needs = {
        (each["what"], each["name"]): each["here"] for each in json.loads(result.stdout)["needs"]
    }
    assert needs["variable", "REFUND_LIMIT"] is False
    assert needs["program", sys.executable] is True
    named = {each["path"]: each["places"] for each in json.loads(result.stdout)["names"]}
    assert named[str(users.first / "work")] == {"requests": 2, "tape heads": 1}


def test_packs_of_one_tape_are_equal(users: TwoUsers, packed: Path) -> None:
    world = [f"{shlex.quote(sys.executable)} world.py {verb}" for verb in ("reset", "verify")]
    plan = ("--fault", "digit", "--where", "tool=get_order", "--seed", "3")
    again = users.above / "again.stumble"
    options = ("--reset", world[0], "--verify", world[1], *plan)
    assert users.stumble("pack", "../a.tape", "-o", str(again), *options).returncode == 0
    assert again.read_bytes() == packed.read_bytes()


@pytest.mark.thorough
def test_other_commands_take_it_as_it_is(users: TwoUsers, packed: Path) -> None:
    shown = users.stumble("show", str(packed), other=True)
    assert shown.stdout == users.stumble("show", "../a.tape").stdout
    assert shown.returncode == 0
    har = users.other / "work" / "a.har"
    result = users.stumble("export", str(packed), "--to", "har", "-o", str(har), other=True)
    assert result.returncode == 0, result.stderr
    assert len(json.loads(har.read_text())["log"]["entries"]) == 2
    result = users.stumble("accept", str(packed), other=True)
    assert result.returncode == 2
    assert "a pack, which is never changed" in result.stderr


def test_a_flipped_byte_is_refused_by_every_command(users: TwoUsers, packed: Path) -> None:
    broken, whole = users.other / "broken.stumble", packed.read_bytes()
    at = whole.index(b"STUMBLE\x02") + 100
    broken.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    for command in (("replay",), ("show",), ("unpack",), ("doctor",)):
        result = users.stumble(*command, str(broken), other=True)
        assert result.returncode == 2, result.stderr
        assert ".tape is damaged" in result.stderr


def test_a_secret_is_refused_with_its_place(users: TwoUsers) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7H8"
    scenario = users.first / "work" / "secret.toml"
    scenario.write_text(f'title = "x"\n# {secret}\n')
    target = users.above / "secret.stumble"
    result = users.stumble("pack", "../a.tape", "-o", str(target), "--scenario", "secret.toml")
    assert result.returncode == 2
    assert (
        "secrets found, so nothing was packed:\n  secret.toml: GitHub token at byte"
        in result.stderr
    )
    assert secret not in result.stderr
    assert not target.exists()
    scenario.unlink()


def test_unpacked_it_is_a_project_of_its_own(users: TwoUsers, packed: Path) -> None:
    folder = users.other / "work" / "project"
    result = users.stumble("unpack", str(packed), "-o", str(folder), other=True)
    assert result.returncode == 0, result.stderr
    [tape] = folder.glob("*.tape")
    assert tape.read_bytes() == (users.first / "a.tape").read_bytes()
    assert (folder / ".stumble" / "snapshots" / "manifests").is_dir()
    again = users.stumble("unpack", str(packed), "-o", str(folder), other=True)
    assert "everything of it is there already" in again.stderr
    tape.write_bytes(b"another")
    assert users.stumble("unpack", str(packed), "-o", str(folder), other=True).returncode == 2
    assert tape.read_bytes() == b"another"
