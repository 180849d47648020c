"""Drop root: run the command as an unprivileged uid."""

import os

from sandbox.supervisor import FIRST_UNUSED_UID, NOBODY_UID, chown_folders
from sandbox.types import SandboxSpec


def transfer_ownership(order: SandboxSpec) -> int:
    """Give the command's writable paths to the user it will run as; return that uid."""
    if os.geteuid() == 0:
        for user in (FIRST_UNUSED_UID + os.getpid(), NOBODY_UID):
            try:
                chown_folders([str(path) for path in order.writable_paths], user)
            except OSError:  # a user namespace that maps few users
                continue
            return user
    return os.getuid()


def restore_ownership(order: SandboxSpec) -> None:
    """Take back the ownership of everything that a command could change."""
    if os.geteuid() == 0:
        chown_folders([str(path) for path in order.writable_paths], 0)
