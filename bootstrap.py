"""Make `.venv` match the lock: any Python from 3.8 on runs this, with nothing installed.

    python3 bootstrap.py          what `stumble` needs to run
    python3 bootstrap.py --dev    and what its tests need
    python3 bootstrap.py --docs   what builds the documentation, in `.cache/docs`
    python3 bootstrap.py --lock   choose new versions and write the locks

Everything it makes is in `.venv`, `.cache` and `.tools` of the checkout. pyenv's shims are never
run: they answer for whichever version is selected at the moment, and uv fails on them. The
interpreters behind them are used by absolute path.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import pwd
import shutil
import ssl
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
DOCS = ROOT / ".cache" / "docs"
TOOLS = ROOT / ".tools"
ALONE = ("harbor", "real")
"""Of whose dependencies the tests need only those that its `.in` names."""
OUR_UV = TOOLS / "uv" / "bin" / "uv"
STAMP = VENV / "installed"
PYTHON = VENV / "bin" / "python"
NEEDED = (3, 13)
LIMIT = 1800  # seconds that one step of an installation may take

PROBE = """
import os, sys, sysconfig
free_threaded = sysconfig.get_config_var("Py_GIL_DISABLED")
if sys.implementation.name == "cpython" and sys.version_info[3] == "final" and not free_threaded:
    print(*sys.version_info[:3], os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Make .venv match the lock.")
    parser.add_argument("--dev", action="store_true", help="install what the tests need, too")
    parser.add_argument("--docs", action="store_true", help="install what builds docs/, no more")
    parser.add_argument("--lock", action="store_true", help="choose new versions, write the locks")
    options = parser.parse_args()
    TOOLS.mkdir(exist_ok=True)
    if options.lock:
        lock()
    with (TOOLS / "lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if options.docs:
            install_docs()
        elif not installed(dev=options.dev):
            install(dev=options.dev)


def installed(dev: bool) -> bool:
    """Whether the environment is what the stamp says; one for development serves both."""
    if not (PYTHON.exists() and STAMP.exists()):
        return False
    return STAMP.read_text() in {stamp(dev=True), stamp(dev=dev)}


def stamp(dev: bool) -> str:
    digest = hashlib.sha256(f"{ROOT} {PYTHON.resolve()}".encode())
    for path in (requirements(dev), ROOT / "pyproject.toml"):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def requirements(dev: bool) -> Path:
    return ROOT / ("requirements-dev.lock" if dev else "requirements.lock")


def install(dev: bool) -> None:
    STAMP.unlink(missing_ok=True)
    uv = find_uv()
    if version(PYTHON) is None:
        python = find_python(uv)
        shutil.rmtree(VENV, ignore_errors=True)
        run(uv, "venv", "--quiet", "--python", python, VENV)
    pip = (uv, "pip")
    into = ("--quiet", "--python", PYTHON)
    print(f"installing {requirements(dev).name} into {VENV.name}", file=sys.stderr)
    run(*pip, "sync", *into, "--require-hashes", requirements(dev))
    # The build back end is in the lock, so nothing newer is fetched to build with.
    run(*pip, "install", *into, "--no-deps", "--no-build-isolation", "--editable", ROOT)
    STAMP.write_text(stamp(dev))


def install_docs() -> None:
    """Make the environment of `make docs`, unless it matches its lock already."""
    lock, stamp = ROOT / "requirements-docs.lock", DOCS / "installed"
    if stamp.exists() and stamp.read_bytes() == lock.read_bytes():
        return
    uv = find_uv()
    shutil.rmtree(DOCS, ignore_errors=True)
    run(uv, "venv", "--quiet", "--python", find_python(uv), DOCS)
    python = ("--quiet", "--python", DOCS / "bin" / "python")
    run(uv, "pip", "sync", *python, "--require-hashes", lock)
    stamp.write_bytes(lock.read_bytes())


def lock() -> None:
    uv = find_uv()
    compiled = [uv, "pip", "compile", "--quiet", "--upgrade", "--universal", "--generate-hashes"]
    compiled += ["--python-version", "3.13", "--no-emit-index-url", "--no-annotate"]
    compiled += ["--custom-compile-command", "make lock"]
    project = ("pyproject.toml", "--group", "build")
    dev = (*project, "--group", "dev", "--constraint", requirements(dev=False))
    run(*compiled, *project, "--output-file", requirements(dev=False))
    run(*compiled, *dev, "--output-file", requirements(dev=True))
    run(*compiled, "--group", "docs", "--output-file", "requirements-docs.lock")
    for agent in sorted((ROOT / "tests" / "agents").glob("*.in")):
        alone = ["--no-deps"] if agent.stem in ALONE else []
        run(*compiled, *alone, agent, "--output-file", agent.with_suffix(".txt"))
    for agent in sorted((ROOT / "tests" / "agents").glob("*/package.json")):
        chosen = ("--package-lock-only", "--omit-lockfile-registry-resolved", "--ignore-scripts")
        run("npm", "install", "--silent", *chosen, "--prefix", agent.parent)


def find_uv() -> str:
    """A uv on PATH, or one of our own: in a venv, or beside pip where there can be no venv."""
    found = shutil.which("uv", path=clean_path())
    if found or OUR_UV.exists():
        return found or str(OUR_UV)
    for python in dict.fromkeys([sys.executable, *pythons()]):
        if uv_in_venv(python) or uv_beside_pip(python):
            return str(OUR_UV)
    raise SystemExit(
        "bootstrap: no uv on PATH, and pip could not install one into .tools (its messages\n"
        "stand above). Install uv, or a Python with its venv module, and run this again."
    )


def uv_in_venv(python: str) -> bool:
    """First choice: it also serves where pip refuses to work outside an environment."""
    made = works(python, "-m", "venv", "--clear", TOOLS / "uv")
    return made and works(TOOLS / "uv/bin/python", "-m", "pip", "install", "--quiet", "uv")


def uv_beside_pip(python: str) -> bool:
    """Second choice: distributions may leave out what venv needs and still bring pip."""
    shutil.rmtree(TOOLS / "uv", ignore_errors=True)
    return works(python, "-m", "pip", "install", "--quiet", "--target", TOOLS / "uv", "uv")


def find_python(uv: str) -> str:
    """The newest patch of the oldest version that will do, the one that we test with."""
    fit = [found for found in map(version, pythons()) if found]
    if fit:
        return min(fit, key=lambda found: (found[0][:2], -found[0][2]))[1]
    wanted = ".".join(map(str, NEEDED))
    if works(uv, "python", "install", "--no-bin", wanted):
        find = [uv, "python", "find", "--managed-python", wanted]
        return subprocess.run(find, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    raise SystemExit(
        f"bootstrap: no Python {wanted} or newer on PATH or under pyenv, and uv could not\n"
        f"download one (its message stands above). There are three ways to get it:\n"
        f"  `uv python install {wanted}`, where there is access to the releases of uv;\n"
        f"  `pyenv install {wanted}`, which compiles it;\n"
        f"  a package of the system, such as python{wanted} and python{wanted}-venv.\n"
        f"Then run this again."
    )


def pythons() -> list[str]:
    """Interpreters that might do, by path: on PATH, then under every pyenv we can see."""
    names = ("python3.13", "python3.14", "python3", "python")
    found = [Path(entry, name) for entry in clean_path().split(os.pathsep) for name in names]
    for root in pyenv_roots():
        found += sorted((root / "versions").glob("3.*/bin/python"), reverse=True)
    return [str(path) for path in found if os.access(path, os.X_OK)]


def pyenv_roots() -> list[Path]:
    """Folders of pyenv that can be read: those of PATH, PYENV_ROOT, HOME and the account.

    Shims and pyenv's own bin both lie beside the folder `versions`.
    """
    entries = os.environ.get("PATH", "").split(os.pathsep)
    homes = [os.environ.get("HOME", ""), account_home()]
    named = [os.environ.get("PYENV_ROOT", ""), *(f"{home}/.pyenv" for home in homes if home)]
    roots = [*(Path(entry).parent for entry in entries if entry), *map(Path, filter(None, named))]
    return [
        root for root in dict.fromkeys(roots) if os.access(root / "versions", os.R_OK | os.X_OK)
    ]


def account_home() -> str:
    """The home folder of the account, which HOME need not name; empty if it has no entry."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""


def clean_path() -> str:
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if entry and Path(entry).name != "shims")


def version(python: str | Path) -> tuple[tuple[int, ...], str] | None:
    """Version and real path of an interpreter; None if it will not do."""
    if not os.access(python, os.X_OK):
        return None
    ask = [python, "-c", PROBE]
    try:
        answer = subprocess.check_output(ask, stderr=subprocess.DEVNULL, text=True, timeout=20)
    except subprocess.SubprocessError:
        return None
    words = answer.split(maxsplit=3)
    if len(words) < 4:
        return None
    numbers = tuple(map(int, words[:3]))
    return (numbers, words[3].strip()) if numbers >= NEEDED else None


def works(*command: str | Path) -> bool:
    return subprocess.run(command, cwd=ROOT, env=environment(), timeout=LIMIT).returncode == 0


def run(*command: str | Path) -> None:
    if not works(*command):
        sys.exit(f"bootstrap: failed: {' '.join(map(str, command))}")


def environment() -> dict[str, str]:
    """Ours without shims and without another environment's claim to be the active one.

    uv trusts the certificates of the system too, if there are any: a company's proxy that
    inspects TLS has its authority there. uv's own are for machines that have none.
    """
    kept = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    trusted = {"UV_SYSTEM_CERTS": "true"} if has_system_certificates() else {}
    return {**trusted, **kept, "PATH": clean_path()}


def has_system_certificates() -> bool:
    paths = ssl.get_default_verify_paths()
    if paths.cafile or not paths.capath or not os.access(paths.capath, os.R_OK):
        return bool(paths.cafile)
    return any(Path(paths.capath).iterdir())


if __name__ == "__main__":
    main()
