"""An unchanged image is recorded through the network of a sidecar, as examples/container says."""

import subprocess
import sys
import time
import tomllib
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import yaml

from sandbox.docker.images import HOST_PATHS
from stumble.daemon.rules import KEYS
from tests.support.servers.docker_sandboxes import image
from tests.unit.test_docs import find_unknown
from traces.tape.reader import read_tape

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples/container"
COMPOSE = yaml.safe_load((EXAMPLES / "compose.yaml").read_text())
NOBODY = "65534:65534"
ANSWER = '{"total": 48.15}'
AGENT = """
import urllib.request
print(urllib.request.urlopen("http://shop.test/order.json", timeout=30).read().decode(), end="")
"""


def docker(*words: str, code: int = 0) -> str:
    done = subprocess.run(("docker", *words), capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def mount(*paths: str) -> list[str]:
    """Read-only mounts of folders of this machine."""
    found = sorted({path for path in paths if Path(path).exists()})
    return [word for path in found for word in ("-v", f"{path}:{path}:ro")]


def test_an_unchanged_image_is_recorded_through_the_network_of_its_sidecar(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    for each in (data, data / "home"):
        each.mkdir()
        each.chmod(0o777)
    rules = (EXAMPLES / "rules.toml").read_text().replace("sample = 0.1", "sample = 1.0")
    (data / "rules.toml").write_text(f"{rules}min_free_mb = 0\n")
    (tmp_path / "order.json").write_text(ANSWER)
    python = mount(*HOST_PATHS, sys.base_prefix)
    program = str(Path(sys.base_prefix) / "bin" / Path(sys.executable).resolve().name)
    services = COMPOSE["services"]
    listen = [w.replace("/etc/stumble", "/data") for w in services["stumble"]["command"]]
    settings = ("-e", "HOME=/data/home", "-e", "STUMBLE_STORE=/data/store", "-v", f"{data}:/data")
    hardened = ("--user", NOBODY, "--cap-drop", "ALL", "--read-only", "--tmpfs", "/tmp")
    own = mount(sys.prefix, str(ROOT))
    sidecar, server = (f"stumble-{name}-{uuid4().hex[:8]}" for name in ("sidecar", "shop"))
    beside = ("--network", f"container:{sidecar}", *python)
    try:
        docker(
            "run", "-d", "--name", sidecar, *hardened, *settings, *python, *own, image(),
            sys.executable, "-m", "stumble", *listen, "--host", "shop.test=127.0.0.1:9000",
        )  # fmt: skip
        wait_for(sidecar, "recording on")
        docker(
            "run", "-d", "--name", server, *beside, "-v", f"{tmp_path}/order.json:/tmp/order.json",
            image(), program, "-u", "-m", "http.server", "9000", "-d", "/tmp",
        )  # fmt: skip
        wait_for(server, "Serving HTTP")
        variables = services["agent"]["environment"]
        given = [w for name in variables for w in ("-e", f"{name}={variables[name]}")]
        assert docker("run", "--rm", *beside, *given, image(), program, "-c", AGENT) == ANSWER
        docker("stop", "-t", "60", sidecar)
        assert "all conversations are on their tapes" in logs(sidecar)
    finally:
        with suppress(AssertionError):
            docker("rm", "-f", server, sidecar)
    [tape] = [read_tape(path) for path in (data / "store").rglob("*.tape")]
    [exchange] = tape.exchanges
    assert exchange.request.url == "http://shop.test/order.json"
    assert exchange.response is not None
    assert exchange.response.body == ANSWER.encode()


def test_the_files_of_the_page_say_the_same() -> None:
    pods = list(yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text()))
    pod = pods[1]["spec"]["template"]["spec"]
    [sidecar], [agent] = pod["initContainers"], pod["containers"]
    services = COMPOSE["services"]
    assert sidecar["args"] == services["stumble"]["command"]
    assert services["agent"]["network_mode"] == "service:stumble"
    variables = {each["name"]: each["value"] for each in agent["env"]}
    assert variables.items() <= services["agent"]["environment"].items()
    words = " ".join(sidecar["args"])
    assert find_unknown("record", words.removeprefix("record ")) == []
    for text in ((EXAMPLES / "rules.toml").read_text(), pods[0]["data"]["rules.toml"]):
        assert tomllib.loads(text).keys() <= set(KEYS.split())
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert "USER 10001:10001" in dockerfile
    assert pod["securityContext"]["runAsNonRoot"]


def logs(name: str) -> str:
    done = subprocess.run(("docker", "logs", name), capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


def wait_for(name: str, words: str) -> None:
    end = time.monotonic() + 60
    while words not in logs(name):
        assert time.monotonic() < end, logs(name)
        time.sleep(0.1)
