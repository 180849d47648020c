"""`stumble completion`: completion of commands and options in a shell."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command(
    epilog="bash needs version 4.4 or newer, and its package bash-completion is not needed.",
)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that completes commands and options in a shell.

    \b
    stumble completion bash >> ~/.bashrc
    stumble completion zsh >> ~/.zshrc
    stumble completion fish > ~/.config/fish/completions/stumble.fish
    """
    from stumble.cli.app import cli

    complete = get_completion_class(shell)
    assert complete is not None, shell
    click.echo(complete(cli, {}, "stumble", "_STUMBLE_COMPLETE").source())
