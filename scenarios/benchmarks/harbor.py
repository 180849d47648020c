"""A task folder as Harbor and Terminal-Bench 2 have it, read into what can be run here.

    task.toml        settings; each key is known or refused
    instruction.md   what the agent is asked to do
    environment/     a Dockerfile, of which WORKDIR, COPY and ENV can be had (see `dockerfile`)
    tests/test.sh    writes /logs/verifier/reward.txt or reward.json
    solution/        solve.sh, by which the tests are proved before anybody is judged by them

There is no container: /app, /logs, /tests and /solution are shown in a mount namespace of each
command's own, and all else is this machine. What cannot be had so is refused with its file and
key; what is only weaker is said in `weaker`.

Wire facts: Harbor 0.25, `TaskConfig` with schema versions up to 1.4.
"""

import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from scenarios.benchmarks import dockerfile
from scenarios.benchmarks.dockerfile import CONTAINED, Image
from scenarios.benchmarks.stage import Facade, Stage
from scenarios.benchmarks.trial import Trial
from scenarios.table import ScenarioError, Table, document

VERSIONS = ("1.0", "1.1", "1.2", "1.3", "1.4")
INSTALLS = re.compile(
    r"(?<![\w./-])(?:apt|apt-get|apk|dnf|yum|sudo|pip3? install|npm install)(?=\s)"
    r"|\|\s*(?:ba)?sh\b"
)
"""What changes a machine: a container can be changed, this one is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarborTask:
    """One task of that form, all of which can be had here."""

    folder: Path
    name: str
    instruction: str
    image: Image
    env: Mapping[str, str]
    tests_env: Mapping[str, str]
    budget: float | None
    limit: float
    """Seconds that its tests may take."""
    weaker: tuple[str, ...]
    form: str = "Harbor"
    url: str | None = None

    @property
    def solved(self) -> Path | None:
        """The script that solves it."""
        path = self.folder / "solution" / "solve.sh"
        return path if path.is_file() else None

    @asynccontextmanager
    async def staged(self, folder: Path, facade: Facade) -> AsyncIterator[Stage]:
        """Its workspace in an empty folder; its own solution must pass there.

        ChildProcessError where it does not: the tests would say nothing of an agent.
        """
        trial = Trial(task=self, folder=folder, facade=facade)
        if self.solved is not None:
            verdict = await trial.proved()
            if verdict.passed is not True:
                raise ChildProcessError(
                    f"{self.folder}: its own solution does not pass here, so that its tests would "
                    f"say nothing of an agent: {verdict.detail}"
                )
        workdir = str(self.image.workdir)
        yield Stage(
            world=trial,
            env={**self.env, "PWD": workdir},
            cwd=trial.root / workdir.lstrip("/"),
            prefix=facade(trial.shown, workdir),
        )


def is_one(folder: Path) -> bool:
    """Whether a folder has this form, or an older one that is refused by name."""
    return any((folder / name).is_file() for name in ("task.toml", "task.yaml"))


def read(folder: Path) -> HarborTask:
    """The task of a folder; ScenarioError, with file and key, where it cannot be had here."""
    folder = folder.resolve()
    if not (folder / "task.toml").is_file():
        raise ScenarioError(
            folder / "task.yaml", "", "this is a task of Terminal-Bench 1; `harbor tasks migrate` "
            "makes one of it that is read here"
        )  # fmt: skip
    for name in ("instruction.md", "tests/test.sh", "environment/Dockerfile"):
        if not (folder / name).is_file():
            raise ScenarioError(folder / name, "", "is missing")
    for name in ("environment/docker-compose.yaml", "environment/.dockerignore", "trajectory.json"):
        if (folder / name).exists():
            raise ScenarioError(folder / name, "", CONTAINED)
    for name in ("tests/test.sh", "solution/solve.sh"):
        _harmless(folder / name)
    top = Table(folder / "task.toml", "", document(folder / "task.toml"))
    return _task(folder, top)


def _task(folder: Path, top: Table) -> HarborTask:
    top.only(
        "schema_version version task metadata verifier agent environment solution source artifacts "
        "steps multi_step_reward_strategy"
    )
    version = top.text("schema_version") or top.text("version") or VERSIONS[-1]
    if version not in VERSIONS:
        key = "schema_version" if "schema_version" in top.said else "version"
        raise top.wrong(key, f"{version!r} is not known; there is {', '.join(VERSIONS)}")
    if top.said.get("steps"):
        raise top.wrong("steps", "a task in several steps is not run here")
    package, agent, verifier = top.table("task"), top.table("agent"), top.table("verifier")
    machine = top.table("environment")
    package.only("name version description authors keywords")
    agent.only("timeout_sec user network_mode allowed_hosts")
    verifier.only(
        "timeout_sec env user environment_mode environment collect network_mode allowed_hosts"
    )
    machine.only(
        "build_timeout_sec docker_image os cpus memory_mb memory storage_mb storage gpus gpu_types "
        "tpu mcp_servers env skills_dir healthcheck workdir allow_internet network_mode "
        "allowed_hosts"
    )
    _contained(verifier, machine)
    image = dockerfile.read(folder / "environment" / "Dockerfile", machine.text("workdir"))
    env = {**image.env, **_env(machine)}
    return HarborTask(
        folder=folder,
        name=package.text("name") or folder.name,
        instruction=_instruction(folder / "instruction.md"),
        image=image,
        env=env,
        tests_env=env | _env(verifier),
        budget=agent.seconds("timeout_sec", 600.0) if "timeout_sec" in agent.said else None,
        limit=verifier.seconds("timeout_sec", 600.0),
        weaker=tuple(_weaker(folder, image, machine, agent, verifier)),
    )


def _contained(verifier: Table, machine: Table) -> None:
    for table, key in (
        (verifier, "environment"),
        (verifier, "collect"),
        (machine, "gpus"),
        (machine, "tpu"),
        (machine, "mcp_servers"),
        (machine, "skills_dir"),
        (machine, "healthcheck"),
    ):
        if table.said.get(key):
            raise table.wrong(key, CONTAINED)
    if (mode := verifier.text("environment_mode") or "shared") != "shared":
        raise verifier.wrong("environment_mode", f"{mode!r} {CONTAINED}")
    if (system := machine.text("os") or "linux") != "linux":
        raise machine.wrong("os", f"{system!r} {CONTAINED}")


def _weaker(folder: Path, image: Image, machine: Table, agent: Table, verifier: Table) -> list[str]:
    tops = ", ".join((*image.tops, "/logs"))
    said = [
        f"no container: programs are this machine's, not those of {image.base}, and all but "
        f"{tops} is this machine's own, to read and to write as far as you may"
    ]
    said += [f"{top} of this machine is hidden" for top in image.tops if Path(top).exists()]
    if limits := [k for k in ("cpus", "memory_mb", "memory", "storage_mb", "storage")
                  if k in machine.said]:  # fmt: skip
        said.append(f"no limit is kept of {', '.join(limits)}")
    for table in (machine, agent, verifier):
        mode = table.text("network_mode") or "public"
        if mode != "public" or table.said.get("allow_internet") is False:
            said.append(f"the network is open, which {table.name} would restrict")
        if table.said.get("user") not in (None, "root", 0):
            said.append(f"{table.name} runs as you, not as {table.said['user']}")
    if not (folder / "solution" / "solve.sh").is_file():
        said.append("without solution/solve.sh nothing proves that its tests work here")
    return said


def _env(table: Table) -> dict[str, str]:
    """Its variables; `${NAME}` and `${NAME:-default}` stand for one of ours."""
    inner, found = table.table("env"), dict[str, str]()
    for key, value in inner.said.items():
        text = str(value)
        if template := re.fullmatch(r"\$\{(\w+)(?::-(.*))?\}", text):
            ours = os.environ.get(template[1], template[2])
            if ours is None:
                raise inner.wrong(key, f"{text}: there is no {template[1]} in the environment")
            text = ours
        found[key] = text
    return found


def _instruction(path: Path) -> str:
    """Without the lines in front by which training data is told apart, which agents do not see."""
    lines = path.read_text("utf-8").splitlines()
    while lines and (not lines[0].strip() or re.match(r"(<!--|#).*canary", lines[0], re.I)):
        lines.pop(0)
    text = "\n".join(lines).strip()
    if not text:
        raise ScenarioError(path, "", "it asks for nothing")
    return text


def _harmless(path: Path) -> None:
    """ScenarioError where a script would change the machine."""
    lines = path.read_text("utf-8").splitlines() if path.is_file() else ()
    for number, line in enumerate(lines, 1):
        if not line.lstrip().startswith("#") and (found := INSTALLS.search(line)):
            why = f"`{found[0]}` changes the machine, which {CONTAINED}"
            raise ScenarioError(path, f"line {number}", why)
