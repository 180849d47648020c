"""`stumble ca`: the certificate authority by which recorded agents trust us."""

import click

from stumble.exits import Failed


@click.group(short_help="Show or replace the certificate authority.", invoke_without_command=True)
@click.pass_context
def ca(context: click.Context) -> None:
    """Show the certificate authority by which recorded agents trust us.

    It is made on first use, one per user, and only agents that stumble runs are told of it; its
    key never leaves this machine. Nothing is ever installed into a system's store.

    \b
    stumble ca
    stumble ca rotate
    """
    if context.invoked_subcommand is None:
        from recorder.authority import facts
        from stumble.home import authority

        known = facts(authority())
        click.echo(f"certificate  {known.certificate}")
        click.echo(f"fingerprint  SHA-256 {known.fingerprint}")
        click.echo(f"expires      {known.expires:%Y-%m-%d}")


@ca.command(short_help="Make a new one; nothing of the old key is kept.")
def rotate() -> None:
    """Make a new certificate authority; nothing of the old key is kept.

    Runs that are under way keep what they began with until they end.
    """
    from recorder.authority import mend
    from recorder.authority import rotate as make
    from stumble.home import STALE, ca_folder

    folder = ca_folder()
    try:
        list(mend(folder))
        known = make(folder)
    except OSError as error:
        raise Failed(f"the certificate authority in {folder}: {error}") from None
    click.echo(f"new certificate authority, SHA-256 {known.fingerprint}")
    click.echo(f"runs that are under way end with the old one; {STALE}")
