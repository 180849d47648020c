"""A signal at any moment leaves no folder of ours."""

import os
import signal
import tempfile
from pathlib import Path

import pytest

from recorder.scratch_folder import make_scratch_folder


class StoppedError(Exception):
    """Raised by the handler of the signal."""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_right_after_the_folder_is_made(
    number: signal.Signals, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise StoppedError

    make = os.mkdir

    def make_and_get_the_signal(path: str, mode: int = 0o777) -> None:
        make(path, mode)
        os.kill(os.getpid(), number)

    monkeypatch.setattr(os, "mkdir", make_and_get_the_signal)
    usual = signal.signal(number, stop)
    try:
        with pytest.raises(StoppedError), make_scratch_folder():
            pytest.fail("the signal came before the block")
        assert signal.getsignal(number) is stop
    finally:
        signal.signal(number, usual)
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("keep", [False, True])
def test_a_folder_is_kept_only_on_request(temporary: Path, keep: bool) -> None:
    with make_scratch_folder("stumble-test-", keep=keep) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "file").touch()
    assert [path.name.startswith("stumble-test-") for path in temporary.iterdir()] == [True] * keep
