"""A temporary folder that no signal can leave behind."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from recorder.ending_signals import handle_ending_signals


@contextmanager
def make_scratch_folder(prefix: str = "stumble-", *, keep: bool = False) -> Iterator[Path]:
    """Yield a new folder that only this user can read; remove it afterwards unless `keep` is set.

    A signal whose handler raises could come after the folder was created and before
    TemporaryDirectory holds its name. So signals that come meanwhile are raised again once it does.
    """
    received: list[int] = []
    with handle_ending_signals(lambda number, _: received.append(number)):
        folder = TemporaryDirectory(prefix=prefix, delete=not keep)
    with folder as name:
        for number in received:
            os.kill(os.getpid(), number)
        yield Path(name)
