"""Secrets in credential and settings files: `.env`, netrc, cloud and command-line tools."""

import re
from collections.abc import Iterator

from traces.redaction.detection import patterns
from traces.redaction.detection.credential_names import (
    MIN_SECRET_LENGTH,
    is_distinctive_secret,
    is_named_secret,
)
from traces.redaction.detection.prefilter import find_possible_formats

PROJECT_CREDENTIAL_FILES = (
    ".env",
    ".env.local",
    ".env.development",
    ".env.production",
    ".env.test",
    ".npmrc",
)
"""Files in a project folder."""
HOME_CREDENTIAL_FILES = (
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".aws/credentials",
    ".azure/accessTokens.json",
    ".config/gcloud/application_default_credentials.json",
    ".config/gh/hosts.yml",
    ".config/glab-cli/config.yml",
    ".config/huggingface/token",
    ".cache/huggingface/token",
    ".config/openai/auth.json",
    ".codex/auth.json",
    ".claude/.credentials.json",
    ".gemini/oauth_creds.json",
    ".qwen/oauth_creds.json",
    ".docker/config.json",
    ".kube/config",
    ".terraform.d/credentials.tfrc.json",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".databrickscfg",
    ".vault-token",
)
"""Files in a home directory."""
MAX_CREDENTIAL_FILE = 1 << 18

_LINE = re.compile(rb"(?m)^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*([\"']?)([^\r\n]*?)\2\s*(?:#.*)?$")
_LOGIN = re.compile(rb"(?:\A|\s)(?:password|_authToken|_password|_auth)[ \t=]+(\S+)")
_FIELD = re.compile(
    rb"\"(?:auth|identitytoken|[a-z_]*token|[a-z_]*secret|password)\"\s*:\s*\"([^\"]+)"
)
_KUBE = re.compile(
    rb"(?m)^\s*(?:token|password|client-key-data|oauth_token)\s*:\s*[\"']?([^\s\"']+)"
)
_ALONE = re.compile(rb"\s*(\S{16,4096})\s*")
_PGPASS = re.compile(rb"(?m)^(?:[^:\r\n]*:){4}([^\r\n]+)$")


def find_file_secrets(name: str, data: bytes) -> Iterator[str]:
    """Yield the values in a file of that name that are distinctive enough to search elsewhere."""
    for value in _iter_credential_values(name.rpartition("/")[2], data):
        if len(value) >= MIN_SECRET_LENGTH and is_distinctive_secret(value):
            yield value.decode("utf-8", "surrogateescape")


def _iter_credential_values(name: str, data: bytes) -> Iterator[bytes]:
    if name.startswith(".env"):
        for match in _LINE.finditer(data):
            if is_named_secret(match[1].decode(), match[3].decode("utf-8", "surrogateescape")):
                yield match[3]
    elif name in ("token", ".vault-token"):
        yield from (match[1] for match in (_ALONE.fullmatch(data),) if match)
    else:
        line_patterns = (_LOGIN, _FIELD, _KUBE, *((_PGPASS,) if name == ".pgpass" else ()))
        yield from (match[1] for pattern in line_patterns for match in pattern.finditer(data))
    yield from (
        data[a:b]
        for a, b, _ in patterns.find_pattern_secrets(
            data, patterns.extract_suspect_runs(data), find_possible_formats(data)
        )
    )
