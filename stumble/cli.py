"""The front door: `stumble COMMAND`."""

import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from types import MappingProxyType

import click

from stumble.exits import Exits, Failed, interrupted
from traces.unrecordable import Unrecordable


def _record() -> click.Command:
    from stumble.commands.record import record

    return record


def _show() -> click.Command:
    from stumble.commands.show import show

    return show


def _replay() -> click.Command:
    from stumble.commands.replay import replay

    return replay


def _fork() -> click.Command:
    from stumble.commands.fork import fork

    return fork


def _redrive() -> click.Command:
    from stumble.commands.redrive import redrive

    return redrive


def _mcp() -> click.Command:
    from stumble.commands.mcp import mcp

    return mcp


def _doctor() -> click.Command:
    from stumble.commands.doctor import doctor

    return doctor


def _probe() -> click.Command:
    from stumble.commands.probe import probe

    return probe


def _import() -> click.Command:
    from stumble.commands.importing import import_

    return import_


def _export() -> click.Command:
    from stumble.commands.export import export

    return export


def _sql() -> click.Command:
    from stumble.commands.sql import sql

    return sql


def _report() -> click.Command:
    from stumble.commands.report import report

    return report


def _leaderboard() -> click.Command:
    from stumble.commands.leaderboard import leaderboard

    return leaderboard


def _gate() -> click.Command:
    from stumble.commands.gate import gate

    return gate


def _compare() -> click.Command:
    from stumble.commands.compare import compare

    return compare


def _shrink() -> click.Command:
    from stumble.commands.shrink import shrink

    return shrink


def _judge() -> click.Command:
    from stumble.commands.judge import judge

    return judge


def _why() -> click.Command:
    from stumble.commands.why import why

    return why


def _scrub() -> click.Command:
    from stumble.commands.scrub import scrub

    return scrub


def _faults() -> click.Command:
    from stumble.commands.faults import faults

    return faults


def _scenarios() -> click.Command:
    from stumble.commands.scenarios import scenarios

    return scenarios


def _run() -> click.Command:
    from stumble.commands.run import run

    return run


def _pipeline() -> click.Command:
    from stumble.commands.pipeline import pipeline

    return pipeline


def _campaign() -> click.Command:
    from stumble.commands.campaign import campaign

    return campaign


def _bench() -> click.Command:
    from stumble.commands.bench import bench

    return bench


def _sandbox() -> click.Command:
    from stumble.commands.sandbox import sandbox

    return sandbox


def _demo() -> click.Command:
    from stumble.commands.demo import demo

    return demo


def _ca() -> click.Command:
    from stumble.commands.ca import ca

    return ca


def _practice() -> click.Command:
    from stumble.commands.practice import practice

    return practice


def _agent() -> click.Command:
    from stumble.commands.agent import agent

    return agent


def _selftest() -> click.Command:
    from stumble.commands.selftest import selftest

    return selftest


COMMANDS: Mapping[str, Callable[[], click.Command]] = MappingProxyType(
    {
        "record": _record,
        "show": _show,
        "replay": _replay,
        "fork": _fork,
        "redrive": _redrive,
        "mcp": _mcp,
        "doctor": _doctor,
        "probe": _probe,
        "scrub": _scrub,
        "faults": _faults,
        "scenarios": _scenarios,
        "run": _run,
        "campaign": _campaign,
        "pipeline": _pipeline,
        "import": _import,
        "export": _export,
        "sql": _sql,
        "why": _why,
        "judge": _judge,
        "report": _report,
        "leaderboard": _leaderboard,
        "gate": _gate,
        "compare": _compare,
        "shrink": _shrink,
        "ca": _ca,
        "practice": _practice,
        "agent": _agent,
        "demo": _demo,
        "sandbox": _sandbox,
        "bench": _bench,
        "selftest": _selftest,
    }
)


_UNWRITABLE = (errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class _Lazy(click.Group):
    """A group whose commands are loaded when they are needed, in the order of a session."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        load = COMMANDS.get(cmd_name)
        return load() if load else None


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="stumble")
def cli() -> None:
    """Record what an agent said and heard, play it back without the network, break one
    thing, and measure whether the agent gets up again.

    \b
    stumble record -o refund.tape -- python my_agent.py
    stumble replay refund.tape
    stumble fork refund.tape --fault http_status:code=503 --where tool=issue_refund
    stumble sql "select * from recovery"
    """


def _interrupt(number: int, _: object) -> None:
    """End as at Ctrl-C, so that what was opened is closed and temporary folders go."""
    from recorder.loop import Interrupted

    raise Interrupted(number)


def main() -> None:
    """Run the command line; known errors become one line and an exit code."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)
    try:
        code = cli.main(prog_name="stumble", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except click.Abort as error:
        code = interrupted(getattr(error.__cause__, "number", signal.SIGINT))
    except ChildProcessError as error:
        Failed(str(error)).show()
        code = Exits.HARNESS
    except BrokenPipeError:
        # Whoever read our output has had enough; the interpreter must not complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = interrupted(signal.SIGPIPE)
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        Failed(f"{error.filename or 'a file'} could not be used: {error.strerror}").show()
        code = Exits.HARNESS
    except Unrecordable as error:
        click.echo(f"stumble: stopped, since the tape can no longer be written: {error}", err=True)
        code = Exits.HARNESS
    except Exception:
        # A mistake of ours, or of an operator that somebody plugged in. Python's own exit code
        # for it would be 1, which says that something was found out about the agent.
        traceback.print_exc()
        code = Exits.HARNESS
    sys.exit(code)
