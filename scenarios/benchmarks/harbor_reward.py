"""Harbor reward files, read as a verdict.

Wire fact (Harbor 0.25): tests write a number to /logs/verifier/reward.txt, or a number or an object
of numbers to reward.json, which wins if both exist. Harbor ignores the exit code; here a pass also
needs exit 0, since tests that fail after writing the reward prove nothing.
"""

import json
import math
from pathlib import Path

from scenarios.world import Verdict

MAX_REWARD_BYTES = 65536
"""Bytes of a reward file that are read."""


def read_reward_verdict(folder: Path, code: int, words: str) -> Verdict:
    """Return the verdict of tests from their exit code and last line `words`.

    Without a readable reward the verdict is unknown, not a fail.
    """
    if code < 0 or code == 124:
        how = "took too long" if code == 124 else f"were ended by signal {-code}"
        return Verdict(None, f"the tests {how}: {words}")
    try:
        reward = _read_reward(folder)
    except (ValueError, OSError) as error:
        return Verdict(None, f"the tests ended with {code} and no reward ({error}): {words}")
    if reward >= 1 and code != 0:
        return Verdict(None, f"reward {reward:g}, but the tests ended with {code}: {words}")
    return Verdict(reward >= 1, f"reward {reward:g}")


def _read_reward(folder: Path) -> float:
    """Raises ValueError or OSError if there is no finite number."""
    as_json = folder / "reward.json"
    if as_json.exists():
        value = json.loads(_read_reward_text(as_json))
        if isinstance(value, dict):
            if "reward" not in value and len(value) != 1:
                raise ValueError(f"reward.json has no key reward, but {', '.join(value)}")
            value = value["reward"] if "reward" in value else next(iter(value.values()))
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"reward.json says {value!r}")
        reward = float(value)
    else:
        reward = float(_read_reward_text(folder / "reward.txt"))
    if not math.isfinite(reward):
        raise ValueError(f"the reward is {reward}")
    return reward


def _read_reward_text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(MAX_REWARD_BYTES + 1)[:MAX_REWARD_BYTES].decode("utf-8")
