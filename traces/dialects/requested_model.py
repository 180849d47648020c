"""The model that a request names, in its body or its path."""

import re
from urllib.parse import unquote, urlsplit

from traces.bodies.content_encoding import read_content
from traces.dialects.types import DialectLens
from traces.model import Request

_IN_PATH = re.compile(r"/(?:models/([^/:]+):\w+|(?:model|deployments)/([^/]+)/[\w/-]+)$")
"""Gemini and Vertex AI (`models/NAME:generateContent`), Bedrock (`model/NAME/converse`), Azure
(`deployments/NAME/chat/completions`)."""


def find_requested_model(dialect: DialectLens, request: Request) -> str | None:
    """Return the name of the requested model; None if the request has none."""
    name = dialect.read_model_name(read_content(request))
    if name is not None:
        return name
    match = _IN_PATH.search(urlsplit(request.url).path)
    return unquote(match[1] or match[2]) if match else None
