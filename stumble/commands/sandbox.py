"""`stumble sandbox`: the image that agents nobody trusts run in, and what holds them here."""

import click

from stumble.exits import Exits, Wrong

IMAGE = "stumble-sandbox:latest"


@click.group(short_help="Build and check the sandbox that agents of the pipeline run in.")
def sandbox() -> None:
    """Build and check the sandbox that agents of the pipeline run in.

    It is a docker container that sees its workspace and reaches nothing but a relay to the
    recorder, which lets through the hosts that a run names.

    \b
    stumble sandbox build --base debian:bookworm
    stumble sandbox build --rootfs host
    stumble sandbox check
    """


@sandbox.command(short_help="Build its image on this machine.")
@click.option("--base", metavar="IMAGE", help="On top of this image, with apt-get where needed.")
@click.option(
    "--rootfs",
    metavar="WHAT",
    help="From a root file system: FOLDER, TAR, debootstrap:SUITE, or host: this machine's own "
    "programs, shown read-only.",
)
@click.option("--tag", default=IMAGE, show_default=True, help="What to call it.")
@click.option("--node", is_flag=True, help="With Node, which many agents are written in.")
def build(base: str | None, rootfs: str | None, tag: str, node: bool) -> None:
    """Build the image of sandboxes: Python, git, a C++ compiler, make and curl.

    No registry is asked for anything but what --base names.
    """
    from scenarios.sandbox import engine, images
    from scenarios.sandbox import rootfs as roots

    if (base is None) == (rootfs is None):
        raise Wrong("say what to build it from: either --base IMAGE or --rootfs WHAT")
    with engine.engine() as client:
        if base is not None:
            images.from_base(client, base, tag, node, lambda line: click.echo(line, err=True))
        elif rootfs == "host":
            images.from_machine(client, tag)
        elif rootfs is not None:
            packages = (*images.PACKAGES, *(images.NODE if node else ()))
            try:
                with roots.packed(rootfs, packages) as tar:
                    images.imported(client, tar, tag)
            except FileNotFoundError:
                raise Wrong(f"--rootfs {rootfs}: there is no such folder or file") from None
    click.echo(f"built {tag}")


@sandbox.command(short_help="Say whether agents can be held here, and try to get out.")
@click.option("--image", default=IMAGE, show_default=True, help="Which image to try.")
def check(image: str) -> None:
    """Say whether agents can be held here: what there is, what is missing, and what to do next.

    Starts a container and tries from in there to reach this machine, its network, the internet
    and a name server; all of it has to fail.
    """
    from recorder import loop
    from scenarios.sandbox.checks import looked

    fine = True
    for line in loop.run(looked(image)):
        click.echo(f"{'ok' if line.ok else 'FAILED':7} {line.what}")
        if line.next:
            click.echo(f"        {line.next}")
        fine = fine and line.ok
    if not fine:
        raise click.exceptions.Exit(Exits.FINDING)


@sandbox.command("list", short_help="List its images, and containers that run.")
def list_() -> None:
    """List the images of sandboxes, and the containers that there are, with their owners."""
    from scenarios.sandbox import engine, images

    with engine.engine() as client:
        for each in images.built(client):
            click.echo(f"image      {each}")
        for container in engine.ours(client):
            click.echo(f"container  {container}")
