"""T0: whether all that the other stages need is there, as we find it and as the agent says.

The agent's `t0/run HELLO.c ENV.json` compiles and links HELLO.c, runs it, and writes

    {"language": {"command": "python3", "version": "3.13.0"},
     "clang": "22.1.8", "lld": "22.1.8", "unicorn": "2.1.4", "hello": {"exit": 37}}

Only versions that we find too, and an exit code that must have been seen, are worth anything.
"""

import json
import re
from importlib.metadata import version

from scenarios.compiler import golden, machine, toolchain
from scenarios.compiler.contract import STAGES
from scenarios.compiler.hello import ASSEMBLY, EXIT
from scenarios.compiler.judged import Judged, scored, unreadable
from scenarios.compiler.submission import Submission

LONGEST = 4096
"""Letters of a command: a longer one cannot be started, nor even be asked for."""
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?")


def lacking() -> tuple[str, ...]:
    """What of all stages' prerequisites is missing or broken here, one line each.

    This is for whoever runs the pipeline, before an agent is started: no agent can mend it.
    """
    if missing := toolchain.missing():
        return (missing,)
    found = []
    try:
        ran = machine.run(toolchain.executable(ASSEMBLY, "assembly"))
        if (ran.ended, ran.exit) != ("exit", EXIT):
            found.append(f"unicorn does not run what clang and ld.lld make: {ran.why or ran.exit}")
    except (ValueError, OSError) as error:  # TimeoutError is one
        found.append(f"clang, ld.lld or unicorn of the extra pipeline does not work: {error}")
    for stage in STAGES:
        try:
            golden.slot(stage)
        except (ValueError, OSError) as error:
            found.append(f"golden artifacts of {stage}: {error}; install stumble anew")
    return tuple(found)


def judge(artifact: bytes, entered: Submission) -> Judged:
    """100 where all that the agent says of its environment is so, else 0 and what is not."""
    try:
        said = json.loads(artifact)
    except (ValueError, RecursionError) as error:
        return unreadable(f"no JSON: {error}")
    if not isinstance(said, dict):
        return unreadable("no object")
    language, hello = (said.get(key) for key in ("language", "hello"))
    if not isinstance(language, dict) or not isinstance(hello, dict):
        return scored(0.0, "language or hello is no object")
    for key, found in _versions(entered).items():
        if said.get(key) != found:
            return scored(0.0, f"{key}: expected {found!r}, got {said.get(key)!r}")
    if hello.get("exit") != EXIT:
        return scored(0.0, f"hello: expected exit {EXIT}, got {hello.get('exit')!r}")
    command, wanted = str(language.get("command")), str(language.get("version"))
    if len(command) > LONGEST:
        return scored(0.0, f"language: a command of {len(command)} letters")
    says = entered.says([command, "--version"])
    if not _VERSION.fullmatch(wanted) or wanted not in _VERSION.findall(says):
        line = (says.splitlines() or ["nothing"])[0]
        return scored(0.0, f"language: {command} --version says {line}, not {wanted!r}")
    return scored(100.0, "")


def _versions(entered: Submission) -> dict[str, str]:
    zig = str(toolchain.zig())
    tools = {"clang": [zig, "clang", "--version"], "lld": [zig, "ld.lld", "--version"]}
    found = {name: _VERSION.findall(entered.says(command)) for name, command in tools.items()}
    if broken := [name for name, versions in found.items() if not versions]:
        raise ChildProcessError(f"{broken[0]} of the extra pipeline does not say its version")
    return {name: versions[0] for name, versions in found.items()} | {"unicorn": version("unicorn")}
