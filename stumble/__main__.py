"""Entry point of `stumble` and `python -m stumble`; `stumble mcp` and the intake load less."""

import atexit
import os
import resource
import signal
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from stumble.errors import ExitCode

PACKAGES = ("faults", "recorder", "replay", "sandbox", "scenarios", "traces")
"""Packages installed along with `stumble`, under names that other distributions may use too."""
CLI_MCP_OPTIONS = ("-h", "--help", "--replay", "--http", "--port", "--speed")
"""Options of `stumble mcp` that the full command line handles."""


def main() -> None:
    """Run the command line.

    An MCP client waits for `stumble mcp` to start in each of its sessions, and an attached program
    for its intake; the full command line loads too slowly for that.
    """
    if hidden := find_hidden_package():
        print(hidden, file=sys.stderr)
        sys.exit(ExitCode.HARNESS)
    disable_core_dumps()
    # A program that ignores it hands that on, and then nobody knows how a process has ended.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if sys.argv[1:2] == ["mcp"] and is_mcp_wrapper(sys.argv[2:]):
        from recorder.mcp.tee import main

        main(sys.argv[2:], recorder=(sys.executable, "-I", "-m", "stumble.mcp.session_recorder"))
    if sys.argv[1:2] == ["attach-intake"]:
        from stumble.runs.attach_intake import main as take_in

        take_in(int(sys.argv[2]))
        return
    from stumble.cli.app import run_cli

    try:
        run_cli()
    except SystemExit as end:
        end_process(end)


def find_hidden_package(beside: Path | None = None) -> str | None:
    """Return a line about one of PACKAGES that another module of that name hides, or None."""
    root = beside or Path(__file__).resolve().parent.parent
    for name in PACKAGES:
        spec = find_spec(name)
        origin = spec.origin if spec else None
        if origin is None or Path(origin).resolve() != root / name / "__init__.py":
            return (
                f"stumble: another module {name!r} ({origin or 'a folder, or none'}) hides ours. "
                "Leave its folder, unset PYTHONPATH, or install stumble in an environment of its "
                "own: uv tool install, or pipx install."
            )
    return None


def end_process(end: SystemExit) -> NoReturn:
    """End with this exit code, without freeing each object first, which takes 0.1 to 0.2 s of CPU.

    Handlers of `atexit` run and streams are flushed. If another thread still runs, or a stream
    cannot be written, the interpreter ends as usual, which waits for the one and reports the other.
    """
    code = 0 if end.code is None else end.code
    waited_for = sum(not thread.daemon for thread in threading.enumerate())
    if waited_for > 1 or not isinstance(code, int):
        raise end
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):  # a stream that was closed is None
        raise end from None
    os._exit(code & 0xFF)


def disable_core_dumps() -> None:
    """Set the soft limit of core files to 0 bytes: memory holds keys until they are redacted.

    Child processes inherit the limit, and may raise it up to the hard limit.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


def is_mcp_wrapper(words: list[str]) -> bool:
    """Whether the first option of `stumble mcp` asks it to wrap a server."""
    while words[:1] in (["--name"], ["--run"]):
        words = words[2:]
    return bool(words) and words[0].partition("=")[0] not in CLI_MCP_OPTIONS


if __name__ == "__main__":
    main()
