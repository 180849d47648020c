"""Which servers live requests trust, beyond the usual authorities, and who they are to them."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from recorder.proxy.corporate_proxy import read_proxy_settings

if TYPE_CHECKING:
    from recorder.proxy.route import UpstreamRoute


class UpstreamTrust(Struct, frozen=True, kw_only=True):
    """The options `--insecure-upstream`, `--upstream-ca` and `--client-cert`."""

    insecure: frozenset[str] = frozenset()
    """Hosts whose certificates are not verified, as the agent itself does not."""
    ca: Path | None = None
    """A PEM file with more certificate authorities of servers."""
    client_cert: Path | None = None
    """A PEM file with a certificate and its key, for servers that want one."""

    def make_route(
        self, hosts: Mapping[str, tuple[str, int]], bundle: Path, scratch: Path
    ) -> "UpstreamRoute":
        """Return the way to servers, by the user's own proxy settings.

        `bundle` holds the authorities that agents trust; those of `ca` are added for us alone.
        """
        from recorder.proxy.route import UpstreamRoute

        if self.ca is not None:
            path = scratch / "upstream-ca.pem"
            path.write_bytes(bundle.read_bytes() + b"\n" + self.ca.read_bytes())
            bundle = path
        return UpstreamRoute(
            hosts=dict(hosts),
            ca_file=bundle,
            proxies=read_proxy_settings(os.environ),
            insecure=frozenset(host.strip("[]") for host in self.insecure),
            client_cert=self.client_cert,
        )

    def to_table(self) -> dict[str, list[str] | str]:
        """Return the table `[tls]` of a campaign."""
        files = {"ca": self.ca, "client_cert": self.client_cert}
        table: dict[str, list[str] | str] = {
            name: str(path.absolute()) for name, path in files.items() if path is not None
        }
        return table | ({"insecure": sorted(self.insecure)} if self.insecure else {})


NO_MORE_TRUST = UpstreamTrust()
