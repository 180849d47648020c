"""What a program printed last: an exception that nothing caught, or its own words."""

import shutil
import subprocess
import sys

import pytest

from faults.judging.crash_output import ends_in_stack, is_reported_failure
from traces.model import RunEnding

GO = """panic: boom

goroutine 1 [running]:
main.main()
\t/tmp/sandbox/prog.go:4 +0x25
exit status 2
"""
RUST = """
thread 'main' panicked at src/main.rs:2:5:
boom
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
"""
JAVA = """Exception in thread "main" java.lang.IllegalStateException: boom
\tat Main.pay(Main.java:5)
\tat Main.main(Main.java:2)
"""
RUBY = """a.rb:1:in `pay': boom (RuntimeError)
\tfrom a.rb:3:in `<main>'
"""


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.stdout + done.stderr


@pytest.mark.parametrize("printed", [GO, RUST, JAVA, RUBY, "a.rb:1:in '<main>': boom (IOError)"])
def test_a_stack_at_the_end_is_a_crash_and_words_after_it_are_a_report(printed: str) -> None:
    assert ends_in_stack(printed)
    assert not ends_in_stack(f"{printed}\nThe price lookup failed, nothing was ordered.\n")


def test_what_interpreters_print_of_an_exception_is_a_stack() -> None:
    python = run(sys.executable, "-c", "import json\njson.loads('<html>')")
    assert ends_in_stack(python)
    assert ends_in_stack(f"looking up\n{python}")
    assert not ends_in_stack(f"{python}price lookup failed: no number\n")
    if shutil.which("node"):
        node = run("node", "-e", "JSON.parse('<html>')")
        assert ends_in_stack(node), node
        assert not ends_in_stack(f"{node}nothing was ordered\n")


@pytest.mark.parametrize(
    "words", ["order failed", "curl: (22) The requested URL returned error: 503\norder failed", ""]
)
def test_words_are_no_stack(words: str) -> None:
    assert not ends_in_stack(words)
    ending = RunEnding(ended="crash", exit_code=3, printed=words)
    assert is_reported_failure(ending) is bool(words)
