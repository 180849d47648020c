"""Check what pipeline runs need on this machine: the workload's programs, sandboxes, agents."""

import os
import shutil
from collections.abc import Iterator, Mapping

from sandbox.health_check import HealthCheckLine, check_docker_engine
from sandbox.process_sandbox import find_missing_protections
from scenarios.agents.presets import PRESETS, AgentPreset
from scenarios.pipeline.workload import find_workload

_NO_KEY = "`stumble pipeline demo` needs none"


async def examine_pipeline(workload: str, env: Mapping[str, str]) -> tuple[HealthCheckLine, ...]:
    """Return a line for each requirement; `ok` is False only for one that no run can do without."""
    protections = await find_missing_protections()
    return (
        _check_workload(workload),
        HealthCheckLine(ok=True, what=f"--sandbox process: {'; '.join(protections) or 'complete'}"),
        *_check_docker(),
        *_check_agents(env),
    )


def _check_workload(name: str) -> HealthCheckLine:
    missing = find_workload(name).missing()
    if missing is None:
        return HealthCheckLine(ok=True, what=f"workload {name.partition(':')[0]}: can be graded")
    return HealthCheckLine(ok=False, what=f"workload {name.partition(':')[0]}: {missing}")


def _check_docker() -> Iterator[HealthCheckLine]:
    """Describe the engine; without one the other sandbox is left."""
    try:
        yield from check_docker_engine()
    except ChildProcessError as error:
        yield HealthCheckLine(
            ok=None, what=f"--sandbox docker: {error}", next="--sandbox process works without it"
        )


def _check_agents(env: Mapping[str, str]) -> Iterator[HealthCheckLine]:
    for preset in PRESETS.values():
        if shutil.which(preset.fresh[0], path=env.get("PATH", os.defpath)):
            yield HealthCheckLine(
                ok=True, what=f"--agent {preset.name}: {_describe_key(preset, env)}"
            )
    absent = [
        each.name
        for each in PRESETS.values()
        if not shutil.which(each.fresh[0], path=env.get("PATH", os.defpath))
    ]
    if absent:
        yield HealthCheckLine(ok=None, what=f"not installed: {', '.join(absent)}")


def _describe_key(preset: AgentPreset, env: Mapping[str, str]) -> str:
    names = preset.keys or tuple(
        sorted(name for name in env if name.endswith("_API_KEY") and env[name])
    )
    given = [name for name in names if env.get(name)]
    if given:
        return f"is here, with {' and '.join(given)}"
    wanted = " or ".join(preset.keys) or "a model's key, such as OPENAI_API_KEY"
    return f"is here; {wanted} is not set ({_NO_KEY})"
