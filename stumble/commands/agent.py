"""`stumble agent`: the built-in agent, on any model that litellm knows."""

import click

_AS_THEY_ARE = {"ignore_unknown_options": True, "help_option_names": []}


@click.command(context_settings=_AS_THEY_ARE, short_help="The built-in agent: a shell, an editor.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def agent(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Work on a task in a folder; `stumble agent --help` lists the options."""
    from scenarios.agents import builtin

    ctx.exit(builtin.main(words))
