"""What an agent in the pipeline's process sandbox must not read, tried by reading it."""

import asyncio
import os
from pathlib import Path

import pytest

from sandbox.process_sandbox import open_process_sandbox
from sandbox.types import SECRET_FOLDERS, SandboxSpec
from stumble.pipeline.sandbox import list_hidden_store_paths
from stumble.user_data.paths import ca_folder

GIT = Path(__file__).resolve().parents[2] / ".git"
"""Whose objects hold the golden artifacts."""
TRIES = """
for path in "$@"; do test -s "$path" && cat "$path"/* "$path" 2>/dev/null; done; echo over
"""


def test_no_key_no_password_hash_and_no_other_run_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (key := ca_folder()).mkdir(parents=True)
    (key / "ca.pem").write_text("the key of the CA")
    store = tmp_path / "store"
    run, other = store / "pipelines" / "mine", store / "pipelines" / "other"
    for folder, text in ((run, "my own"), (other, "another run"), (store / "tapes", "a tape")):
        folder.mkdir(parents=True)
        (folder / "file").write_text(text)
    order = SandboxSpec(
        workspace=run,
        env={"PATH": os.environ["PATH"]},
        hidden=(*SECRET_FOLDERS, *list_hidden_store_paths(run), str(ca_folder())),
    )
    said = tmp_path / "said"
    secrets = [key, other, store / "tapes", run, "/etc/shadow", "/etc/gshadow", GIT, GIT / "HEAD"]

    async def work() -> tuple[str, ...]:
        with said.open("wb") as out:
            async with open_process_sandbox(order) as sandbox:
                words = ["/bin/sh", "-c", TRIES, "sh", *map(str, secrets)]
                await sandbox.run(words, stdout=out.fileno(), stderr=out.fileno())
                return sandbox.weaker

    if any("nothing is hidden" in each for each in asyncio.run(work())):
        pytest.skip("no mount namespaces here")
    assert said.read_text() == "my ownover\n"


def test_of_a_copy_that_is_replayed_nothing_else_is_hidden(tmp_path: Path) -> None:
    (copy := tmp_path / "a" / "copy").mkdir(parents=True)
    (tmp_path / "neighbour").mkdir()
    assert list_hidden_store_paths(copy) == ()
