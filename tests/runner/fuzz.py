"""Random search by Hypothesis: `python -m tests.runner.fuzz MINUTES [PATH ...]`.

Rounds over all properties, each with a seed of its own, until the minutes are over. A failure is
printed as the example to paste beside its property, which every later run then tries first. Ends
in 1 if there was one. It gates nothing.
"""

import argparse
import re
import secrets
import sys
import time
from collections.abc import Iterable, Iterator

from tests.runner.groups import PYTHON, UNIT
from tests.runner.processes import INTERRUPTED, forward_signals, start_command

FALSIFYING = re.compile(r"^(?:E\s+)?(?P<indent>\s*)Falsifying example: (?P<test>\w+)\($")
SELF = re.compile(r"self=<.*>,?$")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.runner.fuzz", description=__doc__)
    parser.add_argument("minutes", type=float)
    parser.add_argument("paths", nargs="*", default=UNIT)
    options = parser.parse_args()
    forward_signals()
    deadline = time.monotonic() + options.minutes * 60
    rounds, found = 0, dict[str, str]()
    while time.monotonic() < deadline and not INTERRUPTED:
        rounds += 1
        seed = secrets.randbelow(1 << 32)
        for test, example in find_examples(run_round(seed, options.paths, deadline)):
            if found.setdefault(test, example) is example:
                print(f"\n{test} (--hypothesis-seed={seed})\n{example}", flush=True)
    print(f"{rounds} rounds, {len(found)} properties failed")
    return 1 if found else 0


def run_round(seed: int, paths: Iterable[str], deadline: float) -> Iterator[str]:
    """Lines of pytest over all properties; none after the deadline."""
    # A hash seed of its own too: the order of a set of strings is drawn like all else.
    environment = {"STUMBLE_TESTS": "fuzz", "PYTHONHASHSEED": str(seed)}
    command = (*PYTHON, "pytest", "-q", "-m", "hypothesis", f"--hypothesis-seed={seed}")
    workers = ("-n", "auto", "--dist", "worksteal")
    left = max(1.0, deadline - time.monotonic())
    with start_command((*command, *workers, *paths), environment, limit=left) as process:
        assert process.stdout
        yield from process.stdout


def find_examples(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the name of each property that failed, and its arguments as a decorator.

    Hypothesis prints `Falsifying example: test_name(`, an argument a line, and `)`.
    """
    arguments: list[str] | None = None
    test = ""
    for line in lines:
        text = re.sub(r"^E\s{2,3}", "", line.rstrip("\n"))
        if found := FALSIFYING.match(line.rstrip("\n")):
            test, arguments = found["test"], []
        elif arguments is not None and text.strip() == ")":
            yield test, "\n".join(["@example(", *arguments, ")"])
            arguments = None
        elif arguments is not None and not SELF.match(text.strip()):
            arguments.append(f"    {text.strip()}")


if __name__ == "__main__":
    sys.exit(main())
