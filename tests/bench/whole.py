"""A complete `stumble replay` compared with the agent alone: practice agent, 22 calls, 45 requests.

    python -m tests.bench.whole [ROUNDS]

The agent alone uses the practice model and the shop; replayed, it uses neither. Both alternate; the
median of the differences is shown. `--times 10` is ten agents and one start-up.
"""

import os
import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.bench.installed import UNCOMPILED
from tests.bench.target import target
from tests.support.practice_shop import (
    Shop,
    shop,
)

ROUNDS, TIMES = 9, 10
MODEL = "practice/verifies"
FAULT = ("--fault", "http_status:code=503", "--twins", "0")
FORKED = (0, 1, 5)
"""Exit codes of a fork: the agent recovered, it did not, or there is no verdict."""
STUMBLE = str(Path(sys.executable).with_name("stumble"))


def took(
    command: tuple[str, ...], folder: Path, env: Mapping[str, str], codes: Collection[int] = (0,)
) -> tuple[float, float]:
    """Return wall seconds and processor seconds of a command, including its children."""
    began = time.perf_counter()
    with subprocess.Popen(
        command, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in codes:
        raise subprocess.CalledProcessError(process.returncode, command, stderr=said)
    return time.perf_counter() - began, used.ru_utime + used.ru_stime


def rounds(world: Shop, count: int) -> None:
    """Run all `count` times and once more to warm up."""
    agent, kept = world.agent(MODEL), world.environment()
    kept.pop(UNCOMPILED, None)
    tools, model = (host.partition("=")[2] for host in world.hosts)
    alone = kept | {"OPENAI_BASE_URL": f"http://{model}/v1", "TOOLS_URL": f"http://{tools}"}
    replay = (STUMBLE, "replay", "a.tape")
    many = (*replay, "--times", str(TIMES))
    fork = (STUMBLE, "fork", "a.tape", *world.host_options(), *FAULT, *world.world())
    more, shared = list[tuple[float, float]](), list[tuple[float, float]]()
    faulted = list[tuple[float, float]]()
    for number in range(count + 1):
        world.reset()
        one = took(agent, world.folder, alone)
        ours = took((*replay, "--", *agent), world.folder, kept)
        all = took((*many, "--", *agent), world.folder, kept)
        episode = took((*fork, "--", *agent), world.folder, kept, FORKED)
        if number:
            faulted.append((episode[0] - one[0], episode[1] - one[1]))
            more.append((ours[0] - one[0], ours[1] - one[1]))
            shared.append((all[0] / ours[0], all[1] / ours[1]))
            print(
                f"alone {one[0]:.2f} s ({one[1]:.2f} of CPU), replayed {ours[0]:.2f} s "
                f"({ours[1]:.2f}), {TIMES} times {all[0]:.2f} s ({all[1]:.2f}), "
                f"faulted {episode[0]:.2f} s ({episode[1]:.2f})",
                flush=True,
            )
    wall, cpu = (median(each) for each in zip(*more, strict=True))
    print(f"of processor time {cpu:.2f} s more")
    target("a whole `stumble replay` of 22 calls, longer than the agent alone", wall, "s", most=0.3)
    wall, cpu = (median(each) for each in zip(*shared, strict=True))
    print(f"{TIMES} replays in one command are {cpu:.1f} of one in processor time")
    target(f"`--times {TIMES}`, which shares the start-up", wall, "x one replay", most=TIMES - 1)
    wall, cpu = (median(each) for each in zip(*faulted, strict=True))
    print(f"an episode with one fault takes {cpu:.2f} s of processor time more")
    target("one faulted episode, longer than the agent alone", wall, "s", most=0.5)


def main(count: int) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name) / "here"
        folder.mkdir()
        with shop(folder) as world:
            said = world.record(model=MODEL)
            assert said.code == 0, said.err
            rounds(world, count)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
