"""Task folders of Harbor and Terminal-Bench 2, parsed into tasks that run without a container.

    task.toml        settings; each key is known or refused
    instruction.md   the agent's instruction
    environment/     a Dockerfile, of which WORKDIR, COPY and ENV are supported (see `dockerfile`)
    tests/test.sh    writes /logs/verifier/reward.txt or reward.json
    solution/        solve.sh, which validates the tests before they judge an agent

There is no container: each command runs in its own mount namespace with /app, /logs, /tests and
/solution mounted; everything else is the host. An unsupported setting is refused with its file and
key; one with a weaker effect is listed in `limitations`.

Wire facts: Harbor 0.25, `TaskConfig` with schema versions up to 1.4.
"""

import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from scenarios.benchmarks import dockerfile
from scenarios.benchmarks.dockerfile import NEEDS_CONTAINER, TaskImage
from scenarios.benchmarks.harbor_workspace import HarborWorkspace
from scenarios.benchmarks.protocol import BenchmarkEnvironment, MountPrefix
from scenarios.toml_reader import ScenarioError, TypedTable, read_toml_document

SCHEMA_VERSIONS = ("1.0", "1.1", "1.2", "1.3", "1.4")
INSTALL_COMMAND = re.compile(
    r"(?<![\w./-])(?:apt|apt-get|apk|dnf|yum|sudo|pip3? install|npm install)(?=\s)"
    r"|\|\s*(?:ba)?sh\b"
)
"""Commands that change the machine, which only a container allows."""


class HarborTask(Struct, frozen=True, kw_only=True):
    """A Harbor task that can run here."""

    folder: Path
    name: str
    instruction: str
    image: TaskImage
    env: Mapping[str, str]
    tests_env: Mapping[str, str]
    budget: float | None
    limit: float
    """Timeout of its tests in seconds."""
    limitations: tuple[str, ...]
    benchmark_format: str = "Harbor"
    url: str | None = None

    @property
    def solution_script(self) -> Path | None:
        """The script that solves the task, or None."""
        path = self.folder / "solution" / "solve.sh"
        return path if path.is_file() else None

    @asynccontextmanager
    async def set_up(
        self, folder: Path, facade: MountPrefix
    ) -> AsyncIterator[BenchmarkEnvironment]:
        """Create its workspace in an empty folder and check that its solution passes there.

        Raises ChildProcessError if it does not: the tests could not judge an agent.
        """
        workspace = HarborWorkspace(task=self, folder=folder, facade=facade)
        if self.solution_script is not None:
            verdict = await workspace.verify_solution()
            if verdict.passed is not True:
                raise ChildProcessError(
                    f"{self.folder}: its own solution does not pass here, so that its tests would "
                    f"say nothing of an agent: {verdict.detail}"
                )
        workdir = str(self.image.workdir)
        yield BenchmarkEnvironment(
            world=workspace,
            env={**self.env, "PWD": workdir},
            cwd=workspace.root / workdir.lstrip("/"),
            prefix=facade(workspace.mounts, workdir),
        )


def is_harbor_task(folder: Path) -> bool:
    """Return whether a folder is a Harbor task, or a Terminal-Bench 1 task, refused with a
    reason.
    """
    return any((folder / name).is_file() for name in ("task.toml", "task.yaml"))


def read_harbor_task(folder: Path) -> HarborTask:
    """Parse a task folder. Raises ScenarioError with file and key if it cannot run here."""
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
            raise ScenarioError(folder / name, "", NEEDS_CONTAINER)
    for name in ("tests/test.sh", "solution/solve.sh"):
        _refuse_installs(folder / name)
    top = TypedTable(folder / "task.toml", "", read_toml_document(folder / "task.toml"))
    return _parse_harbor_task(folder, top)


def _parse_harbor_task(folder: Path, top: TypedTable) -> HarborTask:
    top.allow_only(
        "schema_version version task metadata verifier agent environment solution source artifacts "
        "steps multi_step_reward_strategy"
    )
    version = top.get_text("schema_version") or top.get_text("version") or SCHEMA_VERSIONS[-1]
    if version not in SCHEMA_VERSIONS:
        key = "schema_version" if "schema_version" in top.entries else "version"
        raise top.make_error(
            key, f"{version!r} is not known; there is {', '.join(SCHEMA_VERSIONS)}"
        )
    if top.entries.get("steps"):
        raise top.make_error("steps", "a task in several steps is not run here")
    package, agent, verifier = (
        top.get_table("task"),
        top.get_table("agent"),
        top.get_table("verifier"),
    )
    machine = top.get_table("environment")
    package.allow_only("name version description authors keywords")
    agent.allow_only("timeout_sec user network_mode allowed_hosts")
    verifier.allow_only(
        "timeout_sec env user environment_mode environment collect network_mode allowed_hosts"
    )
    machine.allow_only(
        "build_timeout_sec docker_image os cpus memory_mb memory storage_mb storage gpus gpu_types "
        "tpu mcp_servers env skills_dir healthcheck workdir allow_internet network_mode "
        "allowed_hosts"
    )
    _refuse_container_settings(verifier, machine)
    image = dockerfile.read_dockerfile(
        folder / "environment" / "Dockerfile", machine.get_text("workdir")
    )
    env = {**image.env, **_resolve_env_table(machine)}
    return HarborTask(
        folder=folder,
        name=package.get_text("name") or folder.name,
        instruction=_read_harbor_instruction(folder / "instruction.md"),
        image=image,
        env=env,
        tests_env=env | _resolve_env_table(verifier),
        budget=agent.get_seconds("timeout_sec", 600.0) if "timeout_sec" in agent.entries else None,
        limit=verifier.get_seconds("timeout_sec", 600.0),
        limitations=tuple(_find_harbor_limitations(folder, image, machine, agent, verifier)),
    )


def _refuse_container_settings(verifier: TypedTable, machine: TypedTable) -> None:
    for table, key in (
        (verifier, "environment"),
        (verifier, "collect"),
        (machine, "gpus"),
        (machine, "tpu"),
        (machine, "mcp_servers"),
        (machine, "skills_dir"),
        (machine, "healthcheck"),
    ):
        if table.entries.get(key):
            raise table.make_error(key, NEEDS_CONTAINER)
    if (mode := verifier.get_text("environment_mode") or "shared") != "shared":
        raise verifier.make_error("environment_mode", f"{mode!r} {NEEDS_CONTAINER}")
    if (system := machine.get_text("os") or "linux") != "linux":
        raise machine.make_error("os", f"{system!r} {NEEDS_CONTAINER}")


def _find_harbor_limitations(
    folder: Path, image: TaskImage, machine: TypedTable, agent: TypedTable, verifier: TypedTable
) -> list[str]:
    folders = ", ".join((*image.top_folders, "/logs"))
    limitations = [
        f"no container: programs are this machine's, not those of {image.base}, and all but "
        f"{folders} is this machine's own, to read and to write as far as you may"
    ]
    limitations += [
        f"{top} of this machine is hidden" for top in image.top_folders if Path(top).exists()
    ]
    if limits := [k for k in ("cpus", "memory_mb", "memory", "storage_mb", "storage")
                  if k in machine.entries]:  # fmt: skip
        limitations.append(f"no limit is kept of {', '.join(limits)}")
    for table in (machine, agent, verifier):
        mode = table.get_text("network_mode") or "public"
        if mode != "public" or table.entries.get("allow_internet") is False:
            limitations.append(f"the network is open, which {table.name} would restrict")
        if table.entries.get("user") not in (None, "root", 0):
            limitations.append(f"{table.name} runs as you, not as {table.entries['user']}")
    if not (folder / "solution" / "solve.sh").is_file():
        limitations.append("without solution/solve.sh nothing proves that its tests work here")
    return limitations


def _resolve_env_table(table: TypedTable) -> dict[str, str]:
    """Return its variables, with `${NAME}` and `${NAME:-default}` taken from the environment."""
    inner, resolved = table.get_table("env"), dict[str, str]()
    for key, value in inner.entries.items():
        text = str(value)
        if template := re.fullmatch(r"\$\{(\w+)(?::-(.*))?\}", text):
            from_env = os.environ.get(template[1], template[2])
            if from_env is None:
                raise inner.make_error(key, f"{text}: there is no {template[1]} in the environment")
            text = from_env
        resolved[key] = text
    return resolved


def _read_harbor_instruction(path: Path) -> str:
    """Read the instruction without the canary lines at its start, which agents do not see."""
    lines = path.read_text("utf-8").splitlines()
    while lines and (not lines[0].strip() or re.match(r"(<!--|#).*canary", lines[0], re.I)):
        lines.pop(0)
    text = "\n".join(lines).strip()
    if not text:
        raise ScenarioError(path, "", "it asks for nothing")
    return text


def _refuse_installs(path: Path) -> None:
    """Raise ScenarioError if a script would change the machine."""
    lines = path.read_text("utf-8").splitlines() if path.is_file() else ()
    for number, line in enumerate(lines, 1):
        if not line.lstrip().startswith("#") and (match := INSTALL_COMMAND.search(line)):
            reason = f"`{match[0]}` changes the machine, which {NEEDS_CONTAINER}"
            raise ScenarioError(path, f"line {number}", reason)
