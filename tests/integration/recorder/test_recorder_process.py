"""The agent has our terminal and our signals, and leaves nothing behind."""

import asyncio
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from recorder.agent.process import AgentExit, AgentStreams, run_agent_process
from recorder.ending_signals import SignalInterrupt
from recorder.event_loop import run_event_loop as on_loop

ENV = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
ROOT = Path(__file__).resolve().parents[3]
FOREVER = "sleep 1000"


def agent(script: str, *, cwd: Path | None = None, **options) -> AgentExit:
    return on_loop(run_agent_process(["sh", "-c", script], env=ENV, cwd=cwd, grace=0.3, **options))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def number(path: Path) -> int:
    """A process id that is written to a file, once it is there."""
    until = time.monotonic() + 10
    while not (path.exists() and path.read_text().strip()):
        assert time.monotonic() < until, f"nothing in {path}"
        time.sleep(0.005)
    return int(path.read_text())


def gone(pid: int) -> None:
    until = time.monotonic() + 10
    while alive(pid):
        assert time.monotonic() < until, f"process {pid} is still there"
        time.sleep(0.005)


def test_the_exit_code_is_the_agents() -> None:
    assert agent("exit 7") == AgentExit(code=7)
    assert agent("kill -9 $$") == AgentExit(code=137)


def test_standard_output_directory_and_name_are_the_agents(tmp_path) -> None:
    out, err = tmp_path / "out", tmp_path / "err"
    (tmp_path / "tool").write_text('#!/bin/sh\necho "$0 $PWD $GREETING"; echo oops >&2; cat\n')
    (tmp_path / "tool").chmod(0o755)
    with out.open("wb") as to, err.open("wb") as other:
        ended = on_loop(
            run_agent_process(
                ["./tool"],
                env=ENV | {"GREETING": "hello"},
                cwd=tmp_path,
                streams=AgentStreams(stdout=to, stderr=other),
            )
        )
    assert (ended.code, out.read_text()) == (0, f"./tool {tmp_path} hello\n")
    assert err.read_text() == "oops\n"


@pytest.mark.parametrize("path", ["/usr/bin:/bin", "", ":/bin", "/bin:", "sub", "no/such:sub:/bin"])
@pytest.mark.parametrize(
    "name",
    ["./a", "a", "sub/b", "./sub/../a", "../here/a", "sub//b", "b", "plain", "./plain"]
    + ["text", "./text", "sub", "./sub", ".", "./", "missing", "./missing", "a/", "", "true"],
)
def test_every_program_that_execvp_takes_is_taken(
    name: str, path: str, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`env` of coreutils calls execvp."""
    here = tmp_path / "here"
    (here / "sub").mkdir(parents=True)
    for program in ("a", "sub/b"):
        (here / program).write_text("#!/bin/sh\necho program $1\n")
    (here / "plain").write_text("echo without a first line $1\n")
    (here / "text").write_text("no program")
    for program in ("a", "sub/b", "plain"):
        (here / program).chmod(0o755)
    monkeypatch.chdir(here)
    env = {"PATH": path}
    expected = subprocess.run(
        ["/usr/bin/env", "--", name, "x"], env=env, capture_output=True, check=False
    )
    out = tmp_path / "out"
    code = 0
    with out.open("wb") as to:
        try:
            ended = run_agent_process([name, "x"], env=env, streams=AgentStreams(stdout=to))
            code = on_loop(ended).code
        except FileNotFoundError:
            code = 127
        except PermissionError:
            code = 126
    assert (code, out.read_bytes()) == (expected.returncode, expected.stdout)


def test_what_cannot_run_is_said_before_anything_is_started(tmp_path) -> None:
    (tmp_path / "text").write_text("no program")
    with pytest.raises(FileNotFoundError, match="no such command"):
        on_loop(run_agent_process(["no-such-agent"], env=ENV))
    with pytest.raises(FileNotFoundError):
        on_loop(run_agent_process(["sh"], env={"PATH": str(tmp_path)}))
    for name in (str(tmp_path / "text"), str(tmp_path)):
        with pytest.raises(PermissionError):
            on_loop(run_agent_process([name], env=ENV))
    with pytest.raises(PermissionError):
        on_loop(run_agent_process(["text"], env={"PATH": str(tmp_path)}))


def test_no_program_of_ours_runs_in_the_agents_folder(tmp_path) -> None:
    """An agent may count those that do, and have its name among their arguments."""
    counted = tmp_path / "counted"
    script = f"""for nth in $(seq 9); do
        for each in /proc/[0-9]*; do
            [ "$(readlink $each/cwd)" != "{tmp_path}" ] || tr '\\0' ' ' < $each/cmdline; echo
        done > {counted}
        grep -q "_supervisor[.]py" {counted} || exit 0
    done; exit 1"""
    assert agent(script, cwd=tmp_path).code == 0
    assert "sh -c for nth" in counted.read_text()


def test_the_budget_ends_the_agent_and_its_children(tmp_path) -> None:
    pid = tmp_path / "pid"
    ended = agent(f"trap '' TERM; {FOREVER} & echo $! > {pid}; wait; {FOREVER}", budget=0.3)
    assert ended == AgentExit(code=137, out_of_budget=True)
    gone(number(pid))


def test_an_agent_may_end_in_order_when_its_budget_is_up() -> None:
    script = f"trap 'exit 5' TERM; {FOREVER} & wait"
    assert agent(script, budget=0.3) == AgentExit(code=5, out_of_budget=True)


def test_a_parent_is_signalled_before_its_children() -> None:
    """Otherwise `sleep` below ends first, `wait` returns 0, and so does the agent."""
    program = f"""
import os, subprocess, sys, time
sys.path.insert(0, {str(ROOT / "recorder/agent")!r})
import process_supervisor
chain = "import subprocess, sys, time; n = int(sys.argv[2]); print(flush=True); " \
    "n and subprocess.run([sys.executable, '-c', *sys.argv[1:2] * 2, str(n - 1)]); time.sleep(60)"
first = subprocess.Popen([sys.executable, "-c", chain, chain, "6"], stdout=subprocess.PIPE)
for _ in range(7):
    first.stdout.readline()
found = process_supervisor.list_descendants()
parents = [int(open(f"/proc/{{pid}}/stat").read().rpartition(")")[2].split()[1]) for pid in found]
process_supervisor.ProcessAncestor(0, False).end_descendants()
print(len(found), parents == [os.getpid(), *found[:-1]])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "7 True\n", done.stderr


@pytest.mark.parametrize(
    "leave",
    [
        "{} & echo $! > {}",
        "(setsid {} & echo $! > {})",
        "trap '' HUP; ({} & echo $! > {}) & wait",
        "(trap '' TERM; setsid sh -c 'echo $$ > {1}; trap \"\" TERM; {0}; {0}' &); sleep 0.2",
        "{} & echo $! > {}; kill -STOP $!",
    ],
    ids=["child", "of a session of its own", "twice forked", "stubborn", "stopped"],
)
def test_nothing_is_left_when_the_agent_ends(leave: str, tmp_path) -> None:
    pid = tmp_path / "pid"
    assert agent(leave.format(FOREVER, pid) + "; exit 3") == AgentExit(code=3)
    gone(number(pid))


SUPERVISOR, GUARD = "$PPID", "$(cut -d' ' -f4 /proc/$PPID/stat)"


@pytest.mark.parametrize("ancestor", [SUPERVISOR, GUARD], ids=["supervisor", "guard"])
def test_a_budget_is_kept_by_an_agent_that_stops_its_ancestor(ancestor: str, tmp_path) -> None:
    pid = tmp_path / "pid"
    script = f"{FOREVER} & echo $! > {pid}; kill -STOP {ancestor}; wait"
    assert agent(script, budget=0.5) == AgentExit(code=143, out_of_budget=True)
    gone(number(pid))


@pytest.mark.parametrize("ancestor", [SUPERVISOR, GUARD], ids=["supervisor", "guard"])
def test_nothing_is_left_by_an_agent_that_kills_its_ancestor(ancestor: str, tmp_path) -> None:
    pid = tmp_path / "pid"
    assert agent(f"setsid {FOREVER} & echo $! > {pid}; kill -9 {ancestor}; wait").code == 137
    gone(number(pid))


def test_children_of_ours_are_not_the_agents() -> None:
    with subprocess.Popen(["sleep", "1000"]) as other:
        agent("exit 0")
        assert other.poll() is None
        other.kill()


def test_cancelling_ends_the_agent(tmp_path) -> None:
    pid = tmp_path / "pid"

    async def main() -> None:
        script = f"echo $$ > {pid}; {FOREVER}"
        task = asyncio.create_task(run_agent_process(["sh", "-c", script], env=ENV))
        await asyncio.to_thread(number, pid)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not alive(number(pid))

    on_loop(main())


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_passed_on_once_and_handlers_come_back(sent: signal.Signals, tmp_path) -> None:
    ready, heard = tmp_path / "ready", tmp_path / "heard"
    script = (
        f"trap 'echo x >> {heard}; kill $!; exit 4' {sent.name[3:]};"
        f" {FOREVER} & echo $! > {ready}; wait"
    )

    def send() -> None:
        number(ready)
        os.kill(os.getpid(), sent)

    async def main() -> AgentExit:
        before = [signal.getsignal(each) for each in (2, 15, 1)]
        sender = threading.Thread(target=send)
        sender.start()
        ended = await run_agent_process(["sh", "-c", script], env=ENV)
        sender.join()
        assert [signal.getsignal(each) for each in (2, 15, 1)] == before
        return ended

    assert on_loop(main()) == AgentExit(code=4, signal=sent)
    assert heard.read_text() == "x\n"


def test_a_signal_ends_an_agent_that_is_stopped(tmp_path) -> None:
    """As one in the background that asked for the terminal."""
    ready = tmp_path / "ready"

    def send() -> None:
        pid = number(ready)
        while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGTERM)

    async def main() -> AgentExit:
        sender = threading.Thread(target=send)
        sender.start()
        script = f"echo $$ > {ready}; kill -STOP $$"
        began = asyncio.get_running_loop().time()
        ended = await run_agent_process(["sh", "-c", script], env=ENV, budget=20)
        assert asyncio.get_running_loop().time() - began < 19, "the budget ended it"
        sender.join()
        return ended

    assert on_loop(main()) == AgentExit(code=143, signal=signal.SIGTERM)


def ours(script: str, **options) -> subprocess.Popen[bytes]:
    """A process that does what we do: run an agent and exit with its code."""
    code = (
        "import sys, os; from recorder.event_loop import run_event_loop;"
        "from recorder.agent.process import run_agent_process as run;"
        "ended = run_event_loop(run(['sh', '-c', sys.argv[1]], env=dict(os.environ), grace=0.3));"
        "sys.exit(ended.code)"
    )
    return subprocess.Popen([sys.executable, "-c", code, script], cwd=ROOT, env=ENV, **options)


@pytest.mark.parametrize("whole_group", [False, True])
def test_our_own_kill_takes_the_agent_along(whole_group: bool, tmp_path) -> None:
    agent_pid, child = tmp_path / "agent", tmp_path / "child"
    script = f"setsid {FOREVER} & echo $! > {child}; echo $$ > {agent_pid}; {FOREVER}"
    with ours(script, process_group=0) as process:
        number(agent_pid)
        if whole_group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    gone(number(agent_pid))
    gone(number(child))


def on_a_terminal(script: str) -> tuple[int, subprocess.Popen[bytes]]:
    """Us as a shell starts us: leader of a session whose terminal we hold."""
    keyboard, screen = pty.openpty()
    code = (
        "import fcntl, sys, termios, os;"
        "fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
        f"sys.path.insert(0, {str(ROOT)!r});"
        "from recorder.event_loop import run_event_loop;"
        "from recorder.agent.process import run_agent_process as run;"
        "ended = run_event_loop(run(['sh', '-c', sys.argv[1]], env=dict(os.environ), grace=0.3));"
        "print('ours again', os.tcgetpgrp(0) == os.getpgrp(), ended.code, ended.signal)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, script],
        stdin=screen,
        stdout=screen,
        stderr=screen,
        env=ENV,
        start_new_session=True,
    )
    os.close(screen)
    return keyboard, process


def screen_until(keyboard: int, wanted: bytes) -> bytes:
    shown = b""
    until = time.monotonic() + 20
    while wanted not in shown:
        assert time.monotonic() < until, shown
        shown += os.read(keyboard, 1000)
    return shown


def test_a_terminal_goes_to_the_agent_and_comes_back() -> None:
    keyboard, process = on_a_terminal("test -t 0 && read line && echo got $line")
    with process:
        os.write(keyboard, b"typed\n")
        shown = screen_until(keyboard, b"None\r\n")
    os.close(keyboard)
    assert b"got typed" in shown
    assert b"ours again True 0 None" in shown


def test_ctrl_c_on_a_terminal_is_the_agents_alone() -> None:
    keyboard, process = on_a_terminal("trap 'echo heard; exit 9' INT; echo ready; read x; read x")
    with process:
        screen_until(keyboard, b"ready")
        os.write(keyboard, b"\x03")
        shown = screen_until(keyboard, b"None\r\n")
    os.close(keyboard)
    assert shown.count(b"heard") == 1
    assert b"ours again True 9 None" in shown


def test_ctrl_z_without_a_shell_does_not_hang() -> None:
    keyboard, process = on_a_terminal("echo ready; read x; echo got $x")
    with process:
        screen_until(keyboard, b"ready")
        os.write(keyboard, b"\x1a")
        time.sleep(0.7)
        os.write(keyboard, b"on\n")
        assert b"got on" in screen_until(keyboard, b"True 0 None\r\n")
    os.close(keyboard)


def test_a_signal_goes_to_all_agents_and_one_that_wants_none_has_its_patience(tmp_path) -> None:
    """As in a fork that makes several runs at once."""
    deaf, good = tmp_path / "deaf", tmp_path / "good"
    scripts = (
        f"trap '' TERM; echo $$ > {deaf}; while :; do sleep 0.05; done",
        f"trap 'exit 4' TERM; echo $$ > {good}; while :; do sleep 0.05; done",
    )

    def send() -> None:
        for path in (deaf, good):
            number(path)
        os.kill(os.getpid(), signal.SIGTERM)

    async def main() -> list[AgentExit]:
        before = [signal.getsignal(each) for each in (2, 15, 1)]
        sender = threading.Thread(target=send)
        sender.start()
        runs = (
            run_agent_process(["sh", "-c", each], env=ENV, grace=0.3, patience=0.5)
            for each in scripts
        )
        ended = await asyncio.gather(*runs)
        sender.join()
        assert [signal.getsignal(each) for each in (2, 15, 1)] == before
        return ended

    first, second = on_loop(main())
    assert (first.signal, first.out_of_budget) == (signal.SIGTERM, False)
    assert second == AgentExit(code=4, signal=signal.SIGTERM)
    assert not alive(number(deaf))


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_where_no_agent_runs_closes_what_was_opened(
    sent: signal.Signals, tmp_path
) -> None:
    closed = tmp_path / "closed"

    async def main() -> None:
        try:
            os.kill(os.getpid(), sent)
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(0)
            closed.touch()

    # Whoever started the tests may have it ignored (nohup), and what is ignored stays so.
    started_with = signal.signal(sent, signal.SIG_DFL)
    before = [signal.getsignal(each) for each in (2, 15, 1)]
    with pytest.raises(SignalInterrupt) as told:
        on_loop(main())
    assert told.value.number == sent
    assert closed.exists()
    assert [signal.getsignal(each) for each in (2, 15, 1)] == before
    signal.signal(sent, started_with)


def test_a_signal_after_a_cancellation_is_no_error(tmp_path) -> None:
    """As at Ctrl-C, which a campaign's worker has from its terminal and again from its parent."""
    faults: list[dict[str, object]] = []

    async def cancel_then_signal() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
        stubborn = ["sh", "-c", f"trap '' TERM INT; touch {tmp_path}/ready; sleep 30"]
        running = asyncio.create_task(
            run_agent_process(stubborn, env=ENV, budget=60, grace=0.5, patience=5)
        )
        while not (tmp_path / "ready").exists():
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.sleep(0.1)
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancel_then_signal())
    assert faults == []
