"""What an exchange is: model, tool or other. First match wins, and the host never decides."""

from typing import Literal

from traces.dialects import beside, lens
from traces.model import Request
from traces.noise import noise

type Kind = Literal["model", "tool", "other"]


def kind(request: Request) -> Kind:
    """Model if a dialect fits, other if it is known noise, else tool.

    `other` is a positive list and never the default: an unknown request is something the agent
    did in the world, and losing it would hide a step.
    """
    if lens(request) is not None or beside(request):
        return "model"
    return "tool" if noise(request.url) is None else "other"
