"""Build an agent's environment, so that its traffic goes through the proxy, in any language.

Which client reads which variable was determined by running them. Most read SSL_CERT_FILE, which
replaces the system's store, so the bundle contains that too; Node reads only NODE_EXTRA_CA_CERTS;
plain Node programs read no proxy variable at all, hence the hook.
"""

import os
import ssl
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import certifi

AGENT_PROXY_VARIABLES = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
)
CA_BUNDLE_VARIABLES = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "CODEX_CA_CERTIFICATE",
    "GIT_SSL_CAINFO",
    "AWS_CA_BUNDLE",
    "PIP_CERT",
    "DENO_CERT",
)
RARE_CA_BUNDLE_VARIABLES = (
    "CARGO_HTTP_CAINFO",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "HTTPLIB2_CA_CERTS",
    "NIX_SSL_CERT_FILE",
)
"""Read by few clients, so changed only if set; there they take precedence over the others."""
NODE_HOOK = Path(__file__).with_name("node_hook.mjs")
PYTHON_HOOK = Path(__file__).with_name("python_hook")
"""A folder for PYTHONPATH; see its `sitecustomize.py`."""
TEE_PYTHON_VARIABLE = "STUMBLE_PYTHON"
"""Names the Python on which the tee of a stdio MCP server runs."""
CA_FOLDER_VARIABLE = "SSL_CERT_DIR"
"""Some clients read this first, so its certificates are copied into the bundle."""

SYSTEM_CA_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # Alpine, macOS
    "/usr/local/share/certs/ca-root-nss.crt",  # FreeBSD
)

_BEGIN_CERTIFICATE, _END_CERTIFICATE = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def build_agent_env(
    base: Mapping[str, str], *, proxy_url: str, bundle: Path, node_hook: Path | None
) -> dict[str, str]:
    """Return `base` changed so that all traffic goes to `proxy_url` and clients trust `bundle`."""
    env = {name: value for name, value in base.items() if name != CA_FOLDER_VARIABLE}
    env |= {
        name: "" if _is_no_proxy_variable(name) else proxy_url
        for name in base
        if _is_proxy_variable(name, base[name])
    }
    env |= dict.fromkeys(AGENT_PROXY_VARIABLES, proxy_url)
    env |= {"NO_PROXY": "", "no_proxy": ""}
    env |= dict.fromkeys(CA_BUNDLE_VARIABLES, str(bundle))
    env |= {name: str(bundle) for name in RARE_CA_BUNDLE_VARIABLES if name in base}
    if node_hook is not None:
        # NODE_OPTIONS is split at spaces, which a path may contain but a URL does not.
        hook = f"--import {node_hook.absolute().as_uri()}"
        env["NODE_OPTIONS"] = f"{base['NODE_OPTIONS']} {hook}" if base.get("NODE_OPTIONS") else hook
    # Without this, litellm fetches prices over the network on import, for up to 10 s.
    env.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    return env


def add_server_hooks(env: Mapping[str, str]) -> dict[str, str]:
    """Return an agent's environment in which libraries start stdio MCP servers behind tees."""
    folders = (str(PYTHON_HOOK), *filter(None, [env.get("PYTHONPATH")]))
    hooked = {"PYTHONPATH": os.pathsep.join(folders), TEE_PYTHON_VARIABLE: sys.executable}
    return {**env, **hooked}


def _is_no_proxy_variable(name: str) -> bool:
    return name.lower().endswith(("no_proxy", "noproxy"))


def _is_proxy_variable(name: str, value: str) -> bool:
    """Return whether any program's variable (npm_config_https_proxy) sets or excludes a proxy.

    It would route the agent around the recorder, and may contain the login of the user's proxy.
    """
    return _is_no_proxy_variable(name) or (name.lower().endswith("_proxy") and "://" in value)


def write_ca_bundle(ca: Path, into: Path, base: Mapping[str, str]) -> Path:
    """Write a PEM file into the folder `into` with the system's CAs, those `base` names, and `ca`.

    Duplicate certificates are dropped; the file is replaced atomically.
    """
    # Several variables may name one file, and several links in a folder may lead to one.
    named = (*_find_system_bundle(), *_find_user_bundles(base), ca)
    sources = {(found.st_dev, found.st_ino): each for each in named for found in (each.stat(),)}
    certificates = dict.fromkeys(
        each for source in sources.values() for each in _split_pem_certificates(source)
    )
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=into, delete=False) as file:
        file.write("\n".join(certificates) + "\n")
    path = into / "ca-bundle.pem"
    Path(file.name).chmod(0o644)
    return Path(file.name).replace(path)


def _find_system_bundle() -> Iterator[Path]:
    """Yield the first of the known files that exists; certifi's only if no other does."""
    known = [*SYSTEM_CA_BUNDLES, ssl.get_default_verify_paths().openssl_cafile, certifi.where()]
    yield next(path for path in map(Path, known) if path.is_file())


def _find_user_bundles(base: Mapping[str, str]) -> Iterator[Path]:
    """Yield the existing files that the user's variables name; clients ignore missing ones."""
    paths = [
        Path(base[name])
        for name in (*CA_BUNDLE_VARIABLES, *RARE_CA_BUNDLE_VARIABLES)
        if base.get(name)
    ]
    paths += [Path(each) for each in base.get(CA_FOLDER_VARIABLE, "").split(os.pathsep) if each]
    for path in paths:
        if path.is_file():
            yield path
        elif path.is_dir():
            yield from sorted(each for each in path.iterdir() if each.is_file())


def _split_pem_certificates(path: Path) -> Iterator[str]:
    """Yield the certificates in a PEM file, without the text between them (comments, keys)."""
    text = path.read_text("latin-1")
    for part in text.split(_BEGIN_CERTIFICATE)[1:]:
        encoded, end, _ = part.partition(_END_CERTIFICATE)
        if end:
            yield "\n".join([_BEGIN_CERTIFICATE, *encoded.split(), _END_CERTIFICATE])
