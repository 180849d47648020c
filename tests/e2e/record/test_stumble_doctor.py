"""What `stumble doctor` says of programs that do well, and of those that go around a recording."""

import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import certifi
import pytest

from stumble.doctor.static_checks import check_agent_program, check_agent_variables
from tests.support.practice_shop import Said

ASKS = """
import json, ssl, urllib.request
body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
url, context, opener = "https://api.openai.com/v1/chat/completions", None, []
"""
SENDS = """
asked = urllib.request.Request(url, json.dumps(body).encode())
handler = urllib.request.HTTPSHandler(context=context)
with urllib.request.build_opener(handler, *opener).open(asked, timeout=20) as answer:
    print(json.load(answer)["choices"][0]["message"]["content"])
"""


def doctor(folder: Path, script: str, *options: str) -> Said:
    program = folder / "agent.py"
    program.write_text(ASKS + script + SENDS)
    command = [sys.executable, "-m", "stumble", "doctor", *options, "--", sys.executable]
    done = subprocess.run(
        [*command, str(program)],
        cwd=folder,
        env={**os.environ, "STUMBLE_STORE": str(folder / ".stumble"), "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=90,
    )
    return Said(code=done.returncode, out=done.stdout, err=done.stderr)


def findings(said: Said) -> dict[str, list[tuple[bool | None, str]]]:
    found: dict[str, list[tuple[bool | None, str]]] = {}
    for each in said.json["findings"]:
        found.setdefault(each["what"], []).append((each["seen"], each["text"]))
    return found


def test_a_program_that_honours_proxy_and_certificate_is_sound(tmp_path: Path) -> None:
    said = doctor(tmp_path, "")
    assert said.code == 0, said.err
    assert said.out.splitlines() == [
        "seen    model       1 model call to api.openai.com (openai_chat)",
        "this command would be recorded",
    ]
    assert not (tmp_path / ".stumble").exists(), "nothing is recorded"


def test_a_streamed_answer_is_understood(tmp_path: Path) -> None:
    streams = 'body["stream"] = True\njson.load = lambda a: print(a.read().decode()) or {}\n'
    said = doctor(tmp_path, streams, "--json")
    assert findings(said)["model"] == [(True, "1 model call to api.openai.com (openai_chat)")]


def test_a_program_that_pins_its_certificates_is_found_out(tmp_path: Path) -> None:
    pins = f"context = ssl.create_default_context(cafile={certifi.where()!r})\n"
    said = doctor(tmp_path, pins, "--json")
    assert said.code == 1
    found = findings(said)
    assert found["model"] == [(False, "no model call came, neither by the proxy nor by a base URL")]
    ((seen, text),) = found["certificate"]
    assert seen is False
    assert text.startswith("api.openai.com:443: the agent does not trust our certificate")


def test_a_program_that_knows_no_proxy_is_found_out(tmp_path: Path) -> None:
    direct = 'opener = [urllib.request.ProxyHandler({})]\nurl = "https://192.0.2.7/v1/responses"\n'
    said = doctor(tmp_path, direct, "--json")
    assert said.code == 1
    ((seen, text),) = findings(said)["proxy"]
    assert seen is False
    assert text.startswith("past the proxy: 192.0.2.7:443 tcp; --upstream URL")


def test_what_the_agent_said_is_shown_where_no_model_call_came(tmp_path: Path) -> None:
    said = doctor(tmp_path, "raise SystemExit('no key is set')\n")
    assert said.code == 1
    assert said.out.splitlines()[1:] == [
        "the agent ended with 1, and last said:",
        "  no key is set",
        "this command would not be recorded whole",
    ]


def test_an_agent_that_does_not_end_is_ended(tmp_path: Path) -> None:
    said = doctor(tmp_path, "import time; time.sleep(600)\n", "--budget", "1", "--json")
    assert (said.code, said.json["sound"]) == (1, False)


@pytest.mark.parametrize(
    "command",
    [
        ("docker", "run", "agent"),
        ("sh", "-c", "cd x && docker run agent"),
        ("/usr/bin/podman", "x"),
    ],
)
def test_containers_have_neither_proxy_nor_certificate(command: tuple[str, ...]) -> None:
    assert [seen for seen, _ in check_agent_program(command, {"PATH": ""})] == [False]


@pytest.mark.parametrize(("kind", "expected"), [(1, 1), (3, 0)])
def test_a_static_go_program_may_bring_its_own_trust(
    tmp_path: Path, kind: int, expected: int
) -> None:
    """An ELF file by elf(5): one program header, and what Go writes into each program."""
    program = tmp_path / "agent"
    head = struct.pack("<5s27xQ14xHH", b"\x7fELF\x02", 64, 56, 1).ljust(64, b"\0")
    program.write_bytes(head + struct.pack("<I", kind).ljust(56, b"\0") + b"\xff Go buildinf:")
    program.chmod(0o755)
    assert len([*check_agent_program((str(program),), os.environ)]) == expected


def test_a_node_too_old_for_the_hook_is_named(tmp_path: Path) -> None:
    node = tmp_path / "node"
    node.write_text("#!/bin/sh\necho v18.17.1\n")
    node.chmod(0o755)
    said = [*check_agent_program(("node", "agent.mjs"), {"PATH": str(tmp_path)})]
    assert said == [(False, "Node v18.17.1 is too old for our hook, which needs 18.19")]
    real = shutil.which("node")
    assert real is not None
    assert not [*check_agent_program(("node", "agent.mjs"), os.environ)]


def test_settings_that_lead_around_a_recording_are_named() -> None:
    env = {
        "ANTHROPIC_UNIX_SOCKET": "/run/model.sock",
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "CLAUDE_CODE_USE_VERTEX": "0",
        "GEMINI_SANDBOX": "docker",
        "NO_PROXY": "localhost",
        "OPENAI_BASE_URL": "http://localhost:8000/v1",
    }
    assert [(seen, text.partition(":")[0]) for seen, text in check_agent_variables(env)] == [
        (False, "ANTHROPIC_UNIX_SOCKET"),
        (None, "CLAUDE_CODE_USE_BEDROCK"),
        (False, "GEMINI_SANDBOX=docker"),
        (True, "NO_PROXY is empty for the run, so that these are recorded too"),
    ]


def test_doctor_says_what_it_cannot_start(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "stumble", "doctor", "--", "no-such-agent"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 127
    assert "no-such-agent" in done.stderr
    assert json.dumps("findings") not in done.stdout
