"""The list of runs of `stumble ui` over a store of a million runs: whole HTTP requests.

    python -m tests.bench.listing [MILLIONS]        default 1

Runs of twenty agents and models, a thousand tasks; one of five has an injection with a verdict.
Each address is asked once before it is measured, as a reader has the list before a filter; a
filter that nobody has used before is measured beside it.
"""

import sys
import tempfile
import time
from pathlib import Path

import duckdb
import httpx

from tests.bench.target import target
from tests.support.ui_server import UiServer, ui_server

ROUNDS = 5
LIMIT = 0.3
ROWS = {
    "trajectories": "strftime(epoch_ms(1700000000000 + i * 60000), '%Y%m%dT%H%M%S-')"
    " || right(md5(i::VARCHAR), 8) AS trajectory_id, 'agent' || hash(i) % 20 AS agent,"
    " 'model-' || hash(i + 1) % 20 AS model, 'Repair order ' || hash(i + 2) % 1000 AS task,"
    " 'scenario' || i % 3 AS scenario, if(i % 5 = 0, 'fault', 'clean') AS condition,"
    " 'c' || i // 10000 AS campaign, if(i % 5 > 0, 'record', 'fork') AS source,"
    " 10 + hash(i + 9) % 31 AS n_steps, hash(i) % 10 < 6 AS passed, 'final' AS ended,"
    " hash(i + 3) % 100 / 3.0 AS seconds, hash(i + 4) % 90000 AS tokens,"
    " hash(i + 4) % 90000 / 1e6 AS cost_usd,"
    " epoch_ms(1700000000000 + i * 60000) AS recorded_at FROM range($runs) AS runs (i)",
    "injections": "'i' || i AS injection_id, strftime(epoch_ms(1700000000000 + i * 60000),"
    " '%Y%m%dT%H%M%S-') || right(md5(i::VARCHAR), 8) AS trajectory_id, 'op' || i % 8 AS op,"
    " 3 AS seq FROM range($runs) AS runs (i) WHERE i % 5 = 0",
    "outcomes": "'i' || i AS injection_id, 4 AS judge_version, ['recovered', 'masked',"
    " 'silent_wrong', 'crashed'][(1 + hash(i + 1) % 4)::BIGINT] AS class"
    " FROM range($runs) AS runs (i) WHERE i % 5 = 0",
}
ADDRESSES = {
    "no filter": "/runs?",
    "agent": "/runs?agent=agent7",
    "model and condition": "/runs?model=model-3&condition=fault",
    "outcome": "/runs?outcome=silent_wrong",
    "text": "/runs?q=order+77",
    "by cost": "/runs?sort=-cost",
    "last page": "/runs?page=20000",
}


def main(words: list[str]) -> None:
    runs = int(float(words[0] if words else "1") * 1_000_000)
    with tempfile.TemporaryDirectory(prefix="stumble-bench-") as folder:
        root = Path(folder) / ".stumble"
        _write_store(root, runs)
        with ui_server(root) as server, httpx.Client(headers=server.cookie, timeout=60) as client:
            client.get(server.origin)
            for name, address in ADDRESSES.items():
                first = _ask(client, server, address)
                again = min(_ask(client, server, address) for _ in range(ROUNDS))
                said = f"list of {runs:,} runs: {name}"
                target(f"{said}, first use", first, "s", most=LIMIT)
                target(said, again, "s", most=LIMIT)
            memory = _read_peak(server.process.pid)
            target(f"list of {runs:,} runs: memory of the server", memory, "MB", most=300)


def _write_store(root: Path, runs: int) -> None:
    """Write the rows as one segment, as a long campaign leaves them."""
    with duckdb.connect() as maker:
        maker.execute("SET memory_limit = '1GB'")
        for name, select in ROWS.items():
            where = root / "index" / name
            where.mkdir(parents=True, exist_ok=True)
            rows = select.replace("$runs", str(runs))
            maker.execute(f"COPY (SELECT {rows}) TO '{where}/made.parquet'")
    (root / "tapes").mkdir()


def _ask(client: httpx.Client, server: UiServer, address: str) -> float:
    """Return the seconds of one request."""
    began = time.perf_counter()
    answer = client.get(server.origin + address)
    took = time.perf_counter() - began
    assert answer.status_code == 200
    assert 'class="list rows"' in answer.text
    return took


def _read_peak(pid: int) -> float:
    """Return the peak resident memory in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1000


if __name__ == "__main__":
    main(sys.argv[1:])
