"""As whom a command runs: as ourselves, or, where that is root, as a user who is nobody else."""

import os

from scenarios.sandbox.values import Order
from scenarios.sandbox.warden import NOBODY, STRANGERS, own


def lent(order: Order) -> int:
    """Give what a command may change to the user as whom it is to run; that user."""
    if os.geteuid() == 0:
        for user in (STRANGERS + os.getpid(), NOBODY):
            try:
                own([str(path) for path in order.changed], user)
            except OSError:  # a user namespace that knows few users
                continue
            return user
    return os.getuid()


def taken_back(order: Order) -> None:
    """Have all that a command could change be ours again."""
    if os.geteuid() == 0:
        own([str(path) for path in order.changed], 0)
