"""The command line: `stumble COMMAND`."""

import codecs
import errno
import io
import os
import signal
import sys
import traceback
from pathlib import Path

import click

from stumble.cli.command_table import (
    COMMAND_GROUPS,
    OTHER_NAMES,
    find_command,
    list_command_names,
)
from stumble.cli.project_defaults import find_project_file, read_project_defaults
from stumble.control_characters import escape_standard_streams
from stumble.errors import ExitCode, UsageError, signal_to_exit_code
from stumble.notices import print_notice
from traces.errors import TapeWriteError

_UNWRITABLE = (errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class _LazyGroup(click.Group):
    """A click group that imports a command on first use and lists the commands by job."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(list_command_names())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return find_command(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and find_command(args[0]) is None:
            from difflib import get_close_matches

            known = OTHER_NAMES.get(args[0])
            close = [known] if known else get_close_matches(args[0], list_command_names(), n=1)
            hint = f"did you mean {close[0]}?" if close else "stumble --help lists the commands"
            raise click.UsageError(f"no command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except UsageError as error:
            print_notice(f"stumble: {error.message}")
            ctx.exit(error.exit_code)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for job, commands in COMMAND_GROUPS.items():
            with formatter.section(job):
                formatter.write_dl(tuple(commands.items()))


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from stumble.cli.version import describe_version

        click.echo(describe_version())
        context.exit()


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version, a checkout's commit too, and exit.",
)
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Print on stderr what was matched, joined, answered and judged, and why, with secrets "
    "redacted; STUMBLE_LOG=FILE appends it to a file.",
)
@click.pass_context
def cli(ctx: click.Context, verbose: bool) -> None:
    """Record an agent's model and tool traffic, replay it offline, inject one fault, and
    measure recovery.

    \b
    stumble record -o refund.tape -- python my_agent.py
    stumble replay refund.tape
    stumble fork refund.tape --fault http_status:code=503 --where tool=issue_refund
    stumble sql "select * from recovery"

    Options of a project can be kept in stumble.toml; see docs/configuration.md.
    """
    if verbose:
        os.environ.setdefault("STUMBLE_LOG", "stderr")  # worker processes inherit it
    path, name = find_project_file(Path.cwd()), ctx.invoked_subcommand
    if path is not None and name is not None and (command := find_command(name)) is not None:
        ctx.default_map = {name: read_project_defaults(path, name, command)}


def _raise_interrupted(number: int, _: object) -> None:
    """Unwind as for Ctrl-C, so that open files are closed and temporary folders removed."""
    from recorder.ending_signals import SignalInterrupt

    raise SignalInterrupt(number)


def _encode_surrogates(error: UnicodeError) -> tuple[str | bytes, int]:
    """Print bytes of a file name as they are, and escape half a surrogate pair: JSON has those."""
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.lookup_error("backslashreplace")(error)


def _name_other_store(path: object) -> str:
    from stumble.user_data.paths import store_root

    is_store = Path(str(path)).is_relative_to(store_root())
    return "; set STUMBLE_STORE to a folder that can be written" if is_store else ""


def run_cli() -> None:
    """Run the command line; turn known errors into one line and an exit code."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _raise_interrupted)
    if isinstance(sys.stdout, io.TextIOWrapper):
        codecs.register_error("surrogates", _encode_surrogates)
        sys.stdout.reconfigure(errors="surrogates")
    escape_standard_streams()
    try:
        code = cli.main(prog_name="stumble", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except click.Abort as error:
        code = signal_to_exit_code(getattr(error.__cause__, "number", signal.SIGINT))
    except ChildProcessError as error:
        print_notice(f"stumble: {error}")
        code = ExitCode.HARNESS
    except BrokenPipeError:
        # The reader closed the pipe; without this the interpreter reports the error again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = signal_to_exit_code(signal.SIGPIPE)
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            traceback.print_exc()
        what = error.filename or "a file"
        print_notice(
            f"stumble: {what} could not be used: {error.strerror}{_name_other_store(what)}"
        )
        code = ExitCode.HARNESS
    except TapeWriteError as error:
        print_notice(f"stumble: stopped, since the tape can no longer be written: {error}")
        code = ExitCode.HARNESS
    except Exception:
        # A defect in stumble or in a plugged-in operator. Python would exit with 1, which means
        # a finding about the agent.
        traceback.print_exc()
        code = ExitCode.HARNESS
    sys.exit(code)
