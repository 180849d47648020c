"""What a task's tests wrote: the reward files of Harbor, read as a verdict.

Wire fact (Harbor 0.25): tests write a number to /logs/verifier/reward.txt, or a number or an
object of numbers to reward.json, which wins where both are there. The exit code decides nothing
there; here a pass needs exit 0 as well, since tests that fail after they wrote prove nothing.
"""

import json
import math
from pathlib import Path

from scenarios.world import Verdict

LONGEST = 65536
"""Bytes of a reward file that are looked at; more is no reward."""


def verdict(folder: Path, code: int, words: str) -> Verdict:
    """The verdict of tests that ended with a code and these last words; unknown is no fail."""
    if code < 0 or code == 124:
        how = "took too long" if code == 124 else f"were ended by signal {-code}"
        return Verdict(None, f"the tests {how}: {words}")
    try:
        reward = _reward(folder)
    except (ValueError, OSError) as error:
        return Verdict(None, f"the tests ended with {code} and no reward ({error}): {words}")
    if reward >= 1 and code != 0:
        return Verdict(None, f"reward {reward:g}, but the tests ended with {code}: {words}")
    return Verdict(reward >= 1, f"reward {reward:g}")


def _reward(folder: Path) -> float:
    """ValueError or OSError where there is none that is a finite number."""
    as_json = folder / "reward.json"
    if as_json.exists():
        said = json.loads(_text(as_json))
        if isinstance(said, dict):
            if "reward" not in said and len(said) != 1:
                raise ValueError(f"reward.json has no key reward, but {', '.join(said)}")
            said = said["reward"] if "reward" in said else next(iter(said.values()))
        if isinstance(said, bool) or not isinstance(said, int | float):
            raise ValueError(f"reward.json says {said!r}")
        found = float(said)
    else:
        found = float(_text(folder / "reward.txt"))
    if not math.isfinite(found):
        raise ValueError(f"the reward is {found}")
    return found


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(LONGEST + 1)[:LONGEST].decode("utf-8")
