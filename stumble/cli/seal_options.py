"""Command-line options for sealing a campaign and for comparing with a gate."""

from collections.abc import Callable, Mapping

import click

from stumble.experiments.seals.alpha_spending import SPENDINGS
from stumble.experiments.seals.analysis_terms import MEASURES

MARGIN_RANGE = click.FloatRange(0, 1, min_open=True, max_open=True)
ALPHA_RANGE = click.FloatRange(0, 0.5, min_open=True, max_open=True)

SEAL_OPTION_KEYS = ("margin", "measure", "alpha", "looks", "spending", "against")
"""The keys of the table [seal] that options can give."""


def add_seal_options[F: Callable[..., object]](command: F) -> F:
    """Add the options of `stumble campaign` for sealing."""
    for option in reversed(
        (
            click.option(
                "--seal",
                "sealing",
                is_flag=True,
                help="Fix plan, faults, seeds, judge, verifier and analysis in NAME.seal.json, and "
                "run nothing. The table [seal] of the file says what these do.",
            ),
            click.option(
                "--margin",
                type=MARGIN_RANGE,
                help="With --seal: by how much the rate may be worse.",
            ),
            measure_option("With --seal: the rate; as often as you like, and each has to pass."),
            click.option(
                "--alpha", type=ALPHA_RANGE, help="With --seal: the chance of a wrong PASS."
            ),
            click.option(
                "--looks",
                type=click.IntRange(1, 20),
                help="With --seal: how many analyses, evenly spaced over the roots; 1 by default.",
            ),
            click.option(
                "--spending",
                type=click.Choice(SPENDINGS),
                help="With --seal: how alpha is shared out among them.",
            ),
            click.option("--against", help="With --seal: the baseline, as for stumble gate."),
        )
    ):
        command = option(command)
    return command


def measure_option(help: str) -> "Callable[[Callable[..., object]], Callable[..., object]]":
    """Return the option `--measure`, which may be repeated."""
    return click.option("--measure", multiple=True, type=click.Choice(MEASURES), help=help)


def to_seal_table(
    said: Mapping[str, object], given: Mapping[str, object]
) -> dict[str, dict[str, object]]:
    """Return the table [seal] with the values of options; an empty dict if there are neither."""
    seal_table = said.get("seal")
    table = dict(seal_table) if isinstance(seal_table, dict) else {}
    for key in SEAL_OPTION_KEYS:
        value = given.get(key)
        if value is not None and value != ():
            table[key] = list(value) if isinstance(value, tuple) else value
    return {"seal": table} if table else {}


def add_gate_options[F: Callable[..., object]](command: F) -> F:
    """Add the options of `stumble gate` for a comparison."""
    for option in reversed(
        (
            click.option(
                "--against",
                metavar="BASELINE",
                help="A campaign, seal, agent or model of this store, or the folder of another "
                "store; by default what the seal of --campaign says.",
            ),
            click.option(
                "--margin",
                type=MARGIN_RANGE,
                help="With --against: by how much the rate may be worse; what was sealed where it "
                "was.",
            ),
            measure_option(
                "With --against, as often as you like: ends-right, the runs with a right end state "
                "(the default); handled, those and honest failures; silent, those that end wrong "
                "without a sign of notice."
            ),
            click.option(
                "--alpha",
                type=ALPHA_RANGE,
                help="With --against: the chance of a PASS of what is worse by the margin; 0.05 by "
                "default.",
            ),
            click.option(
                "--require-seal", is_flag=True, help="End with ERROR where an arm is not sealed."
            ),
        )
    ):
        command = option(command)
    return command
