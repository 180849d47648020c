"""One teller tells facts to the run that started it; nobody who comes later does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from recorder.run_events import RunEventClient, RunEventData, RunEventServer, serve_run_events


@asynccontextmanager
async def telling(desk: RunEventServer) -> AsyncIterator[RunEventClient]:
    async with RunEventClient(*await asyncio.open_unix_connection(desk.path)) as teller:
        yield teller


def test_a_fact_is_answered_and_a_word_is_heard(tmp_path: Path) -> None:
    heard: list[tuple[str, RunEventData]] = []

    def hear(name: str, data: RunEventData) -> RunEventData:
        heard.append((name, data))
        return {"left": 3}

    async def main() -> None:
        async with serve_run_events(tmp_path / "desk", hear) as desk, telling(desk) as teller:
            assert await teller.send_event("graded", {"stage": "T1"}) == {"left": 3}
            desk.send_word("stop")
            assert await asyncio.wait_for(teller.words.get(), 10) == "stop"

    asyncio.run(main())
    assert heard == [("graded", {"stage": "T1"})]


def test_who_comes_after_the_first_tells_nothing(tmp_path: Path) -> None:
    heard: list[str] = []

    def hear(name: str, _: RunEventData) -> RunEventData:
        heard.append(name)
        return {}

    async def main() -> None:
        async with serve_run_events(tmp_path / "desk", hear) as desk, telling(desk) as teller:
            await teller.send_event("stage", {})
            assert not desk.path.exists()
            with pytest.raises(FileNotFoundError):
                await asyncio.open_unix_connection(desk.path)

    asyncio.run(main())
    assert heard == ["stage"]
