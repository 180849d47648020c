"""The command that installs the extra `pipeline`, for the way stumble was installed here."""

import importlib.util
import json
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from shlex import quote
from urllib.parse import unquote, urlsplit


def format_install_hint(absent: list[str]) -> str:
    """Return one line: the missing packages, and the command to install them."""
    return (
        f"{' and '.join(absent)} not installed: "
        f"{make_install_command(Path(sys.prefix), _read_install_origin())}"
    )


def make_install_command(prefix: Path, origin: dict[str, object]) -> str:
    """Return the command that installs the extra into the environment at `prefix`.

    `origin` is the direct_url.json of the installation (PEP 610), empty if it came from an index.
    uv and pipx each leave a marker file in the environments they manage.
    """
    url = str(origin.get("url", ""))
    requirement = quote(f"stumble[pipeline] @ {url}" if url else "stumble[pipeline]")
    details = origin.get("dir_info")
    if isinstance(details, dict) and details.get("editable"):
        return f"make -C {quote(unquote(urlsplit(url).path))} dev"
    if (prefix / "uv-receipt.toml").exists():
        return f"uv tool install {requirement}"
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx install --force {requirement}"
    python = quote(str(prefix / "bin" / "python"))
    if importlib.util.find_spec("pip") is None:
        return f"uv pip install --python {python} {requirement}"
    return f"{python} -m pip install {requirement}"


def _read_install_origin() -> dict[str, object]:
    try:
        text = distribution("stumble").read_text("direct_url.json")
    except PackageNotFoundError:
        return {}
    origin = json.loads(text) if text else {}
    return origin if isinstance(origin, dict) else {}
