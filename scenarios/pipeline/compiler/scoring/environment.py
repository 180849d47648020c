"""T0: check the other stages' prerequisites on this machine and in the agent's report.

The agent's `t0/run HELLO.c ENV.json` compiles and links HELLO.c, runs it, and writes

    {"language": {"command": "python3", "version": "3.13.0"},
     "clang": "22.1.8", "lld": "22.1.8", "unicorn": "2.1.4", "hello": {"exit": 37}}

Only versions that the grader finds as well, and an exit code that must have been observed, score.
"""

import json
import re
from importlib.metadata import version

from scenarios.pipeline.compiler import emulator_pool, toolchain
from scenarios.pipeline.compiler.hello import ASSEMBLY, EXIT
from scenarios.pipeline.compiler.scoring.artifact_score import (
    ArtifactScore,
    make_artifact_score,
    score_unreadable_artifact,
)
from scenarios.pipeline.compiler.submission import StageSubmission

MAX_COMMAND = 4096
"""Longest command in characters; a longer one cannot be started."""
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?")


def find_missing_prerequisites() -> tuple[str, ...]:
    """Return the missing or broken prerequisites of all stages, one line each.

    This is for the user of the pipeline, before an agent starts: no agent can repair it.
    """
    if missing := toolchain.explain_missing_tools():
        return (missing,)
    problems = []
    try:
        result = emulator_pool.run_emulated(toolchain.link_executable(ASSEMBLY, "assembly"))
        if (result.ended, result.exit) != ("exit", EXIT):
            problems.append(
                f"unicorn does not run what clang and ld.lld make: {result.why or result.exit}"
            )
    except (ValueError, OSError) as error:  # TimeoutError is one
        problems.append(f"clang, ld.lld or unicorn of the extra pipeline does not work: {error}")
    return tuple(problems)


def score_environment(artifact: bytes, entered: StageSubmission, exit_code: int) -> ArtifactScore:
    """Score 100 if the agent's report on its environment is correct, else 0 with the first error;
    T0's program ends with `exit_code`.
    """
    try:
        report = json.loads(artifact)
    except (ValueError, RecursionError) as error:
        return score_unreadable_artifact(f"no JSON: {error}")
    if not isinstance(report, dict):
        return score_unreadable_artifact("no object")
    language, hello = (report.get(key) for key in ("language", "hello"))
    if not isinstance(language, dict) or not isinstance(hello, dict):
        return make_artifact_score(0.0, "language or hello is no object")
    for key, actual in _find_tool_versions(entered).items():
        if report.get(key) != actual:
            return make_artifact_score(0.0, f"{key}: expected {actual!r}, got {report.get(key)!r}")
    if hello.get("exit") != exit_code:
        got = hello.get("exit")
        return make_artifact_score(0.0, f"hello: expected exit {exit_code}, got {got!r}")
    command, claimed = str(language.get("command")), str(language.get("version"))
    if len(command) > MAX_COMMAND:
        return make_artifact_score(0.0, f"language: a command of {len(command)} letters")
    printed = entered.read_command_output([command, "--version"])
    if not _VERSION.fullmatch(claimed) or claimed not in _VERSION.findall(printed):
        line = (printed.splitlines() or ["nothing"])[0]
        return make_artifact_score(
            0.0, f"language: {command} --version says {line}, not {claimed!r}"
        )
    return make_artifact_score(100.0, "")


def _find_tool_versions(entered: StageSubmission) -> dict[str, str]:
    zig = str(toolchain.find_zig())
    tools = {"clang": [zig, "clang", "--version"], "lld": [zig, "ld.lld", "--version"]}
    versions_by_tool = {
        name: _VERSION.findall(entered.read_command_output(command))
        for name, command in tools.items()
    }
    if broken := [name for name, versions in versions_by_tool.items() if not versions]:
        raise ChildProcessError(f"{broken[0]} of the extra pipeline does not say its version")
    return {name: versions[0] for name, versions in versions_by_tool.items()} | {
        "unicorn": version("unicorn")
    }
