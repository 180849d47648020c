"""How to install the extra `pipeline`, for the way in which stumble was installed here."""

import importlib.util
import json
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from shlex import quote
from urllib.parse import unquote, urlsplit


def advice(absent: list[str]) -> str:
    """One line: what is not here, and what to type."""
    return f"{' and '.join(absent)} not installed: {command(Path(sys.prefix), _origin())}"


def command(prefix: Path, origin: dict[str, object]) -> str:
    """What installs the extra into the environment at `prefix`.

    `origin` is the direct_url.json of the installation (PEP 610), empty where it came from an
    index. uv and pipx each leave a file of theirs in the environments they keep.
    """
    url = str(origin.get("url", ""))
    what = quote(f"stumble[pipeline] @ {url}" if url else "stumble[pipeline]")
    details = origin.get("dir_info")
    if isinstance(details, dict) and details.get("editable"):
        return f"make -C {quote(unquote(urlsplit(url).path))} dev"
    if (prefix / "uv-receipt.toml").exists():
        return f"uv tool install {what}"
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx install --force {what}"
    python = quote(str(prefix / "bin" / "python"))
    if importlib.util.find_spec("pip") is None:
        return f"uv pip install --python {python} {what}"
    return f"{python} -m pip install {what}"


def _origin() -> dict[str, object]:
    try:
        said = distribution("stumble").read_text("direct_url.json")
    except PackageNotFoundError:
        return {}
    found = json.loads(said) if said else {}
    return found if isinstance(found, dict) else {}
