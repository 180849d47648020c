"""`stumble sandbox`: build and check the container image for untrusted agents."""

import click

from stumble.errors import ExitCode, UsageError

SANDBOX_IMAGE = "stumble-sandbox:latest"


@click.group()
def sandbox() -> None:
    """Build and check the sandbox for pipeline agents.

    The sandbox is a Docker container with the agent's workspace. Its only connection leads to an
    egress proxy at the recorder, which allows the hosts listed for the run.

    \b
    stumble sandbox build --base debian:bookworm
    stumble sandbox build --rootfs host
    stumble sandbox check
    """


@sandbox.command(short_help="Build the image on this machine.")
@click.option(
    "--base", metavar="IMAGE", help="Build on this image; missing packages come from apt-get."
)
@click.option(
    "--rootfs",
    metavar="WHAT",
    help="Build from a root file system: FOLDER, TAR, debootstrap:SUITE, or host (the programs of "
    "this machine, mounted read-only).",
)
@click.option("--tag", default=SANDBOX_IMAGE, show_default=True, help="Tag of the image.")
@click.option("--node", is_flag=True, help="Include Node, which many agents need.")
def build(base: str | None, rootfs: str | None, tag: str, node: bool) -> None:
    """Build the sandbox image: Python, git, a C++ compiler, make and curl.

    Pulls nothing from an image registry except --base.
    """
    from sandbox.docker import engine, images
    from sandbox.docker import rootfs as roots

    if (base is None) == (rootfs is None):
        raise UsageError("give either --base IMAGE or --rootfs WHAT")
    with engine.open_docker_engine() as client:
        if base is not None:
            images.build_derived_image(
                client, base, tag, node, lambda line: click.echo(line, err=True)
            )
        elif rootfs == "host":
            images.build_host_image(client, tag)
        elif rootfs is not None:
            packages = (*images.PACKAGES, *(images.NODE if node else ()))
            try:
                with roots.open_rootfs_tar(rootfs, packages) as tar:
                    images.import_rootfs_image(client, tar, tag)
            except FileNotFoundError:
                raise UsageError(f"--rootfs {rootfs}: no such folder or file") from None
    click.echo(f"built {tag}")


@sandbox.command(short_help="Check the sandbox by trying to escape from it.")
@click.option("--image", default=SANDBOX_IMAGE, show_default=True, help="Image to check.")
def check(image: str) -> None:
    """Check whether this machine can sandbox agents; print missing parts and next steps.

    Starts a container and tries to reach this machine, its network, the internet and a name
    server from it; every attempt has to fail. Exit codes: 0 all checks pass, 1 one fails.
    """
    from recorder import event_loop
    from sandbox.health_check import check_docker_sandbox

    fine = True
    for line in event_loop.run_event_loop(check_docker_sandbox(image)):
        click.echo(f"{'ok' if line.ok else 'FAILED':7} {line.what}")
        if line.next:
            click.echo(f"        {line.next}")
        fine = fine and line.ok is not False
    if not fine:
        raise click.exceptions.Exit(ExitCode.FINDING)


@sandbox.command("list", short_help="List sandbox images and containers.")
def list_command() -> None:
    """List the sandbox images, and the existing sandbox containers with their owners."""
    from sandbox.docker import engine, images

    with engine.open_docker_engine() as client:
        for each in images.list_built_images(client):
            click.echo(f"image      {each}")
        for container in engine.list_sandbox_containers(client):
            click.echo(f"container  {container}")
