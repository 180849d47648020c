"""One run of pytest inside a forked process."""

import json
import os
import sys
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

INSTALLED = tuple(
    f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "purelib", "platlib")
)

COLLECT_ONLY = "--collect-only"


class Outcomes:
    """A plugin that keeps how each test ended.

    Properties stop at the first example that fails.
    """

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}

    def pytest_sessionstart(self) -> None:
        """Once a test has failed all is known: a smaller example of its failure is not wanted."""
        from hypothesis import Phase, settings

        phases = [each for each in Phase if each not in (Phase.shrink, Phase.explain)]
        settings.register_profile("unshrunk", settings(), phases=phases)
        settings.load_profile("unshrunk")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed" or report.nodeid not in self.outcomes:
            self.outcomes[report.nodeid] = report.outcome


def run_pytest(tree: Path, scratch: Path, arguments: tuple[str, ...]) -> int:
    """pytest's exit code; what else it came to is in `scratch`/result.json."""
    _enter(tree, scratch)
    _share_constants(scratch)
    outcomes = Outcomes()
    # A native traceback is 0.2 s cheaper: the others look for its source in all modules.
    standard = ["-q", "-p", "no:cacheprovider", "--tb=native"]
    code = pytest.main([*standard, f"--basetemp={scratch / 'tmp'}", *arguments], plugins=[outcomes])
    result: dict[str, Any] = {"outcomes": outcomes.outcomes}
    if COLLECT_ONLY in arguments:
        result["modules"] = _installed_modules()
    (scratch / "result.json").write_text(json.dumps(result))
    return int(code)


def _enter(tree: Path, scratch: Path) -> None:
    """Have this process, and those it starts, see `tree` and no other checkout."""
    here = Path(__file__).resolve().parent
    ours = (here, here.parents[1])
    sys.path[:] = [str(tree), *(path for path in sys.path if Path(path).resolve() not in ours)]
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]
    # What multiprocessing spawns would otherwise import the runner.
    sys.modules["__main__"] = ModuleType("__main__")
    sys.argv[1:] = []
    os.chdir(tree)
    os.environ["PYTHONPATH"] = str(tree)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    # The few examples of `make test` miss some mistakes; a shard has only a part of the tests.
    os.environ["STUMBLE_TESTS"] = "all"
    os.environ.pop("STUMBLE_SHARD", None)
    os.environ.pop("STUMBLE_ORDER", None)
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(scratch / "hypothesis")


def _share_constants(scratch: Path) -> None:
    """Have Hypothesis read the constants of each source once for all runs, by its checksum."""
    shared, own = scratch.parent / "constants", scratch / "hypothesis"
    shared.mkdir(exist_ok=True)
    own.mkdir(exist_ok=True)
    (own / "constants").symlink_to(shared)


def _installed_modules() -> list[str]:
    """The modules that are no part of the tree, in the order in which they were imported."""
    return [
        name
        for name, module in list(sys.modules.items())
        if (getattr(module, "__file__", None) or "").startswith(INSTALLED)
    ]
