"""A complete `stumble replay` compared with the agent alone: practice agent, 22 calls, 45 requests.

    python -m tests.bench.whole [ROUNDS]

The agent alone uses the practice model and the shop; replayed, it uses neither. Both alternate; the
median of the differences is shown. `--times 10` is ten agents and one start-up.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.bench.command_cost import STUMBLE, CommandCost, measure_command
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


@dataclass(frozen=True, slots=True)
class PracticeCommands:
    """Commands about the recording a.tape of the practice agent."""

    world: Shop

    @property
    def environment(self) -> dict[str, str]:
        return {k: v for k, v in self.world.environment().items() if k != UNCOMPILED}

    @property
    def agent(self) -> tuple[str, ...]:
        return self.world.agent(MODEL)

    def run_agent(self) -> CommandCost:
        """Run the agent without stumble, with the practice model and the shop."""
        self.world.reset()
        tools, model = (host.partition("=")[2] for host in self.world.hosts)
        hosts = {"OPENAI_BASE_URL": f"http://{model}/v1", "TOOLS_URL": f"http://{tools}"}
        return measure_command(self.agent, self.world.folder, self.environment | hosts)

    def replay(self, *options: str) -> CommandCost:
        return self.run_stumble("replay", "a.tape", *options, "--", *self.agent)

    def fork(self) -> CommandCost:
        options = (*self.world.host_options(), *FAULT, *self.world.world())
        return self.run_stumble("fork", "a.tape", *options, "--", *self.agent, codes=FORKED)

    def run_stumble(self, *words: str, codes: tuple[int, ...] = (0,)) -> CommandCost:
        return measure_command((STUMBLE, *words), self.world.folder, self.environment, codes)


@contextmanager
def open_practice(parent: Path) -> Iterator[PracticeCommands]:
    """Serve the practice world for the block, with a recording in a new folder."""
    folder = parent / "here"
    folder.mkdir()
    with shop(folder) as world:
        practice = PracticeCommands(world)
        world.reset()
        practice.run_stumble("record", "-o", "a.tape", *world.host_options(), "--", *practice.agent)
        yield practice


def rounds(practice: PracticeCommands, count: int) -> None:
    """Run all `count` times and once more to warm up."""
    more, shared = list[tuple[float, float]](), list[tuple[float, float]]()
    faulted = list[tuple[float, float]]()
    for number in range(count + 1):
        agent, replayed = practice.run_agent(), practice.replay()
        many, episode = practice.replay("--times", str(TIMES)), practice.fork()
        if number:
            faulted.append(subtract(episode, agent))
            more.append(subtract(replayed, agent))
            shared.append((many.seconds / replayed.seconds, many.processor / replayed.processor))
            print(
                f"alone {agent.seconds:.2f} s ({agent.processor:.2f} of CPU), "
                f"replayed {replayed.seconds:.2f} s ({replayed.processor:.2f}), "
                f"{TIMES} times {many.seconds:.2f} s ({many.processor:.2f}), "
                f"faulted {episode.seconds:.2f} s ({episode.processor:.2f})",
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


def subtract(cost: CommandCost, other: CommandCost) -> tuple[float, float]:
    """Return how much longer one took, in wall seconds and in processor seconds."""
    return cost.seconds - other.seconds, cost.processor - other.processor


def main(count: int) -> None:
    with TemporaryDirectory() as name, open_practice(Path(name)) as practice:
        rounds(practice, count)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
