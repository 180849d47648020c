"""The SDKs of further providers, each with its settings: rows for tests/agents/provider_bash.py."""

from collections.abc import Mapping

from tests.agents import LOCKS, environment
from tests.support.agents.client_table import MODEL, Client, Dialect

BEDROCK_MODEL = "anthropic.claude-sonnet-4-5-20250929-v1:0"
_AWS = {
    "AWS_ACCESS_KEY_ID": "AKIA0123456789ABCDEF",
    "AWS_SECRET_ACCESS_KEY": "stumble-test/0123456789abcdefghijklmnopq",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


def _provider(
    api: str, dialect: Dialect, *, model: str = MODEL, env: Mapping[str, str] | None = None
) -> Client:
    program = str(LOCKS / "provider_bash.py")
    return Client(
        command=lambda prompt: (str(environment("providers")), program, api, model, prompt),
        dialect=dialect,
        streams=api.endswith("_streamed"),
        env=env or {},
    )


PROVIDERS: Mapping[str, Client] = {
    "ollama": _provider(
        "ollama_streamed", "ollama_chat", env={"OLLAMA_HOST": "https://ollama.com"}
    ),
    "cohere": _provider("cohere_streamed", "cohere_chat", env={"CO_API_KEY": "co-0123456789"}),
    "bedrock": _provider("converse_streamed", "bedrock_converse", model=BEDROCK_MODEL, env=_AWS),
    "bedrock-bearer": _provider(
        "converse",
        "bedrock_converse",
        model=BEDROCK_MODEL,
        env={"AWS_BEARER_TOKEN_BEDROCK": "bedrock-api-key-0123456789", "AWS_REGION": "us-east-1"}
        | {"AWS_DEFAULT_REGION": "us-east-1"},
    ),
    "anthropic-bedrock": _provider(
        "bedrock_anthropic_streamed", "bedrock_anthropic", model=BEDROCK_MODEL, env=_AWS
    ),
    "anthropic-vertex": _provider(
        "vertex_anthropic_streamed", "anthropic_messages", model="claude-sonnet-4-5"
    ),
    "gemini-vertex": _provider("vertex_gemini", "gemini", model="gemini-2.5-pro"),
    "azure": _provider(
        "azure", "openai_chat", model="gpt-4o", env={"AZURE_OPENAI_API_KEY": "azure-0123456789"}
    ),
    "azure-v1": _provider("azure_streamed", "openai_chat", model="gpt-4o"),
    "mistral": _provider("mistral", "openai_chat"),
}
"""By name; those with the same program differ by how requests are signed or where they go."""

SIGNED = ("bedrock", "anthropic-bedrock")
"""Those whose requests have a signature of their bodies."""
