"""`stumble ca`: show or replace the certificate authority that recorded agents trust."""

import click

from stumble.errors import HarnessError


@click.group(invoke_without_command=True)
@click.pass_context
def ca(context: click.Context) -> None:
    """Show the certificate authority that recorded agents trust.

    It is created on first use, one per user, and only agents started by stumble trust it. Its
    key never leaves this machine, and nothing is installed into the system's certificate store.

    \b
    stumble ca
    stumble ca rotate
    """
    if context.invoked_subcommand is None:
        from recorder.ca import read_ca_info
        from stumble.user_data.paths import prepare_ca_folder

        known = read_ca_info(prepare_ca_folder())
        click.echo(f"certificate  {known.certificate}")
        click.echo(f"fingerprint  SHA-256 {known.fingerprint}")
        click.echo(f"expires      {known.expires:%Y-%m-%d}")


@ca.command(short_help="Create a new one and delete the old key.")
def rotate() -> None:
    """Create a new certificate authority and delete the old key.

    Runs in progress use the old one until they end.
    """
    from recorder.ca import repair_ca_permissions
    from recorder.ca import rotate_ca as make
    from stumble.user_data.paths import STALE_CA_NOTE, ca_folder

    folder = ca_folder()
    try:
        list(repair_ca_permissions(folder))
        known = make(folder)
    except OSError as error:
        raise HarnessError(f"the certificate authority in {folder}: {error}") from None
    click.echo(f"new certificate authority, SHA-256 {known.fingerprint}")
    click.echo(f"runs in progress use the old one until they end; {STALE_CA_NOTE}")
