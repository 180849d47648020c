"""`stumble agent`: the built-in agent, with any litellm model."""

import click

_PASS_ALL_OPTIONS = {"ignore_unknown_options": True, "help_option_names": []}


@click.command(context_settings=_PASS_ALL_OPTIONS)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def agent(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Work on a task in a folder; `stumble agent --help` lists the options."""
    from scenarios.agents import builtin

    ctx.exit(builtin.main(words))
