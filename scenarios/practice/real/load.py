"""Load a real model by the name of its packaged weights, or from a file."""

import re
from pathlib import Path

from scenarios.practice.real.chat_model import RealChatModel
from scenarios.practice.real.engine import EngineSettings, LlamaEngine
from scenarios.practice.real.weights import (
    RealModelMissing,
    check_engine,
    check_gguf_file,
    find_packaged_weights,
)


def load_chat_model(
    name: str | None,
    gguf: Path | None,
    *,
    seed: int = 0,
    temperature: float = 0.0,
    settings: EngineSettings,
) -> RealChatModel:
    """Return the model in `gguf`, else that of `name`. Raises RealModelMissing."""
    check_engine()
    path = check_gguf_file(gguf) if gguf is not None else find_packaged_weights(name or "smollm2")
    served = name or re.sub(r"[^A-Za-z0-9._-]", "-", path.stem)
    try:
        engine = LlamaEngine(path, settings)
    except RuntimeError as error:
        raise RealModelMissing(f"{path} cannot be loaded: {error}") from None
    return RealChatModel(name=served, engine=engine, seed=seed, temperature=temperature)
