"""The files of this machine that a graded program sees: a shell, ordinary tools, Python, libraries.

A path is here because it is named, or because something that is named is linked with it. So the
compilers and runtimes of this machine are absent without being known by name, and so is what
somebody installed for Python: only the standard library is there.
"""

import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from sysconfig import get_path

from sandbox.file_links import list_outermost_paths

FOLDERS = tuple(Path(name) for name in ("/usr/local/bin", "/usr/bin", "/bin"))
"""Where the tools are looked for."""
_TOOLS = """
sh bash dash env which xargs find test [ true false echo printf expr seq sleep timeout date id
uname nproc getconf cat cp mv rm mkdir rmdir ln ls chmod touch mktemp readlink realpath basename
dirname pwd stat install dd head tail cut paste join tr sort uniq wc tee split csplit comm nl od
tac rev fold fmt expand unexpand numfmt factor base64 cksum md5sum sha1sum sha256sum sha512sum
diff cmp grep egrep fgrep sed awk gawk mawk tar gzip gunzip zcat bc
"""
TOOLS = tuple(_TOOLS.split())
"""What a `run` in shell may call: tools for files and text, none that makes machine code."""
LIBRARIES = (
    "libc.so.6",
    "libm.so.6",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "libutil.so.1",
    "libresolv.so.2",
    "libgcc_s.so.1",
    "libstdc++.so.6",
    "libatomic.so.1",
)
"""What programs in C, C++, Rust and the like are linked with; in the folder of Python's libc."""
DATA = tuple(
    Path(name)
    for name in (
        "/etc/ld.so.cache",
        "/etc/localtime",
        "/etc/nsswitch.conf",
        "/usr/lib/locale",
        "/usr/share/zoneinfo",
    )
)
_RESOLVED = re.compile(r"^\s+(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
"""A library in the output of ldd(1), with its path."""


@cache
def list_cell_paths() -> tuple[Path, ...]:
    """Return files and folders, and the links on the way to them; () where no cell can be built.

    No path lies in another one. Raises OSError if ldd(1) cannot be started.
    """
    if sys.platform != "linux":
        return ()
    stdlib = Path(get_path("stdlib"))
    tools = [path for name in TOOLS for folder in FOLDERS if (path := folder / name).is_file()]
    programs = (*list_interpreters(), *tools)
    modules = (path for path in stdlib.glob("lib-dynload/*.so") if "tkinter" not in path.name)
    libraries = find_libraries({path.resolve() for path in (*programs, *modules)})
    named = (stdlib, *programs, *libraries, *DATA)
    return list_outermost_paths(named)


@cache
def list_package_folders() -> tuple[Path, ...]:
    """Return the folders in the standard library's where packages are installed."""
    stdlib = Path(get_path("stdlib")).resolve()
    return (stdlib / "site-packages", stdlib / "dist-packages")


def list_interpreters() -> tuple[Path, ...]:
    """Return the names under which the interpreter that runs this is started, without a venv."""
    program = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    names = (program.with_name(f"python{suffix}") for suffix in ("", "3", version))
    return tuple(dict.fromkeys((*filter(Path.exists, names), program)))


def find_libraries(programs: Iterable[Path]) -> tuple[Path, ...]:
    """Return the libraries that programs are linked with, with the loader, and LIBRARIES."""
    ran = subprocess.run(
        ["ldd", *sorted(programs)], capture_output=True, text=True, check=False, env={"LC_ALL": "C"}
    )
    linked = [Path(found) for found in _RESOLVED.findall(ran.stdout)]
    folders = dict.fromkeys(path.parent for path in linked)
    named = (folder / name for name in LIBRARIES for folder in folders)
    return tuple(dict.fromkeys((*linked, *filter(Path.exists, named))))
