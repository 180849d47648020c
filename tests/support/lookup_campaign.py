"""A campaign of a user's own agent, which looks up a price with a file of its folder."""

import json
import shlex
import sys
from pathlib import Path

from tests.support.campaign_folder import Bench

AGENT = """
import json, os, sys, urllib.request
from pathlib import Path

def ask(said):
    body = json.dumps({"model": "gpt-4o", "input": said, "stream": True}).encode()
    headers = {"content-type": "application/json"}
    wanted = urllib.request.Request("http://model.test/v1/responses", body, headers)
    with urllib.request.urlopen(wanted, timeout=20) as answer:
        lines = answer.read().decode().splitlines()
    return json.loads(lines[-2].removeprefix("data: "))["response"]["output"][0]

talk = [{"role": "user", "content": f"what does order {sys.argv[1]} cost?"}]
call = ask(talk)
price = json.dumps({"order": "7", "price": int(Path("price.txt").read_text())})
ask([*talk, call, {"type": "function_call_output", "call_id": call["call_id"], "output": price}])
if "needs a key" in sys.argv:
    os.environ["SHOP_KEY"]
Path("world.txt").write_text("looked up")
"""
WORLD = """
import sys
from pathlib import Path
if sys.argv[1] == "reset":
    Path("world.txt").write_text("")
raise SystemExit(Path("world.txt").read_text() not in ("", "looked up"))
"""
ROWS = """
    select t.parent_id, t.cell, t.condition, t.ended, t.passed, o.class, o.noticed, o.recovered,
        o.baseline_valid, len(o.twins), o.passed, o.signals
    from trajectories as t
    left join injections as i using (trajectory_id)
    left join outcomes as o using (injection_id)
    where t.campaign = 'nightly' order by all
"""
RATES = "select op, fired, consumed, recovery_rate, silent_rate, handled_rate from recovery"


def write_campaign(bench: Bench, model: str, *words: str, count: int = 2, reps: int = 1) -> Path:
    """Record the agent `count` times, and write `nightly.toml`."""
    bench.write("agent.py", AGENT)
    bench.write("world.py", WORLD)
    bench.write("price.txt", "4312")
    for order in range(count):
        agent = (sys.executable, "agent.py", str(order), *words)
        result = bench.stumble(
            "record", "-o", f"{order}.tape", "--host", f"model.test={model}", "--", *agent,
            env={"SHOP_KEY": "of-the-author"},
        )  # fmt: skip
        assert result.code == 0, result.err
    python = shlex.quote(sys.executable)
    bench.write(
        "nightly.toml",
        f"""
traces = {json.dumps([f"{order}.tape" for order in range(count)])}
twins = 3
reps = {reps}
max_cost = 3.0
[world]
reset = "{python} {{workspace}}/world.py reset"
verify = "{python} world.py verify"
[hosts]
"model.test" = "{model}"
[[faults]]
fault = "digit"
""",
    )
    return bench.folder / "nightly.toml"
