"""What an agent's environment must say so that its traffic comes to us, in any language.

Which variable which client reads was found by running them: most read SSL_CERT_FILE, which
takes the place of the system's store, so the bundle holds that too; Node reads only
NODE_EXTRA_CA_CERTS; plain Node programs read no proxy variable at all, hence the hook.
"""

import os
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import certifi

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
BUNDLES = (
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
OTHERS = (
    "CARGO_HTTP_CAINFO",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "HTTPLIB2_CA_CERTS",
    "NIX_SSL_CERT_FILE",
)
"""Read by few, so changed only where they are set; there they would come before the others."""
NODE_HOOK = Path(__file__).with_name("node_hook.mjs")
DIRECTORIES = "SSL_CERT_DIR"
"""Some clients look here first, so its certificates move into the bundle."""

SYSTEM = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # Alpine, macOS
    "/usr/local/share/certs/ca-root-nss.crt",  # FreeBSD
)

_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def environment(
    base: Mapping[str, str], *, proxy_url: str, bundle: Path, node_hook: Path | None
) -> dict[str, str]:
    """`base` with all traffic led to `proxy_url`, and `bundle` trusted by whoever can be told."""
    env = {name: value for name, value in base.items() if name != DIRECTORIES}
    env |= {name: "" if _excepts(name) else proxy_url for name in base if _leads(name, base[name])}
    env |= dict.fromkeys(PROXIES, proxy_url)
    env |= {"NO_PROXY": "", "no_proxy": ""}
    env |= dict.fromkeys(BUNDLES, str(bundle))
    env |= {name: str(bundle) for name in OTHERS if name in base}
    if node_hook is not None:
        # A path may hold spaces, at which NODE_OPTIONS would be split; a URL does not.
        hook = f"--import {node_hook.absolute().as_uri()}"
        env["NODE_OPTIONS"] = f"{base['NODE_OPTIONS']} {hook}" if base.get("NODE_OPTIONS") else hook
    # Otherwise litellm asks the network for prices when it is imported, for up to 10 s.
    env.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    return env


def _excepts(name: str) -> bool:
    return name.lower().endswith(("no_proxy", "noproxy"))


def _leads(name: str, value: str) -> bool:
    """Whether a variable of any program (npm_config_https_proxy) says where a proxy is, or is not.

    It would lead the agent past us, and may hold the login of the user's proxy.
    """
    return _excepts(name) or (name.lower().endswith("_proxy") and "://" in value)


def bundle(ca: Path, into: Path, base: Mapping[str, str]) -> Path:
    """A PEM file in the folder `into` with the system's CAs, those that `base` names, and `ca`.

    Each certificate stands there once; the file is there whole or not at all.
    """
    # Many variables name one file, and many names in a folder of them lead to one.
    sources = dict.fromkeys(each.resolve() for each in (*_system(), *_users(base), ca))
    found = dict.fromkeys(each for source in sources for each in _certificates(source))
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=into, delete=False) as file:
        file.write("\n".join(found) + "\n")
    path = into / "ca-bundle.pem"
    Path(file.name).chmod(0o644)
    return Path(file.name).replace(path)


def _system() -> Iterator[Path]:
    """The first of the known files that there is; certifi's own only where there is none."""
    known = [*SYSTEM, ssl.get_default_verify_paths().openssl_cafile, certifi.where()]
    yield next(path for path in map(Path, known) if path.is_file())


def _users(base: Mapping[str, str]) -> Iterator[Path]:
    """The files and folders that the user's variables name; what is not there, clients ignore."""
    named = [Path(base[name]) for name in (*BUNDLES, *OTHERS) if base.get(name)]
    named += [Path(each) for each in base.get(DIRECTORIES, "").split(os.pathsep) if each]
    for path in named:
        if path.is_file():
            yield path
        elif path.is_dir():
            yield from sorted(each for each in path.iterdir() if each.is_file())


def _certificates(path: Path) -> Iterator[str]:
    """The certificates in a PEM file, without what stands between them (comments, keys)."""
    text = path.read_text("latin-1")
    for part in text.split(_BEGIN)[1:]:
        body, end, _ = part.partition(_END)
        if end:
            yield "\n".join([_BEGIN, *body.split(), _END])
