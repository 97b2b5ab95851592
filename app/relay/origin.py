"""The origin of a connection: the address by which quotas and bans count it.

Behind a proxy every connection comes from the proxy. Its header about the client is trusted only if the
operator has named that proxy, and ignored otherwise."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from multidict import MultiMapping

LOOPBACK = "loopback"
"""Address of this computer itself where its operator exempts it from limits, for experiments, and of a proxy's
sockets. Never used for a client behind a proxy."""
HERE = "127.0.0.1/32"
"""Address of this computer, whichever of its millions of loopback addresses a program uses: programs of other
users are strangers too."""
UNKNOWN = "unknown"
"""Address of all clients whose proxy does not state their address, or contradicts itself."""

_log = logging.getLogger(__name__)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_HOME_BITS = 56  # providers give a household an IPv6 /56
_INDOORS: tuple[Network, ...] = tuple(
    ipaddress.ip_network(text)
    for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "fc00::/7", "fe80::/10")
)


class Origins:
    """Determines the address by which a request is counted. `trusted`: the operator's proxies. If one of them
    is on this computer, a loopback connection without the header is limited as UNKNOWN: it could be a client
    of that proxy. `exempt`: whether this computer's own connections have no limits."""

    def __init__(self, trusted: Iterable[Network] = (), exempt: bool = False) -> None:
        self._trusted, self._exempt = tuple(trusted), exempt
        self._told = False

    def of(self, remote: str, headers: MultiMapping[str]) -> str:
        """Returns the network of a request's client, LOOPBACK or UNKNOWN. `remote`: the socket's peer
        address."""
        if not self.trusts(remote):
            counted = self.counted(remote)
            if counted == HERE and "X-Forwarded-For" in headers and not self._told:
                self._told = True
                _log.warning(
                    "A proxy on this computer passes clients on, and all of them count as one address: start "
                    "the relay with --trusted-proxy %s.",
                    remote,
                )
            return counted
        forwarded = [one for line in headers.getall("X-Forwarded-For", ()) for one in line.split(",")]
        said = headers.getall("X-Real-IP", ())
        client = self._client(forwarded)
        real = self._client(said)
        if forwarded and said and real is not None and client != real and not self._trusts(real):
            return UNKNOWN  # one of the two was written by the client
        found = client if forwarded else real
        return UNKNOWN if found is None else network(found)

    def counted(self, remote: str) -> str:
        """Like `counted_address`; LOOPBACK for this computer if it is exempt."""
        found = counted_address(remote)
        return LOOPBACK if self._exempt and found == HERE else found

    def trusts(self, remote: str) -> bool:
        """True if `remote` is one of the operator's proxies."""
        address = parse(remote) if self._trusted else None
        return address is not None and self._trusts(address)

    def _client(self, hops: Sequence[str]) -> Address | None:
        """The right-most hop that is not a trusted proxy: hops further left may be forged."""
        found = None
        for hop in reversed(hops):
            found = parse(hop)
            if found is None or not self._trusts(found):
                return found
        return found

    def _trusts(self, address: Address) -> bool:
        return any(address.version == net.version and address in net for net in self._trusted)


def parse(text: str) -> Address | None:
    """Parses an address as sockets and proxies write it, with an optional port or zone. None for any other
    text.

    >>> parse("192.0.2.7:1234"), parse("[2001:db8::1]:80"), parse("::ffff:192.0.2.7"), parse("me")
    (IPv4Address('192.0.2.7'), IPv6Address('2001:db8::1'), IPv4Address('192.0.2.7'), None)
    """
    text = text.strip().strip('"')[:64]
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def network(address: Address) -> str:
    """The network by which an address is counted: /24 or /56 on the internet, where one household or attacker
    has many addresses; the single address in a private network.

    >>> [network(ipaddress.ip_address(text)) for text in ("192.0.2.7", "2001:db8:1:2ff::1", "192.168.1.7")]
    ['192.0.2.0/24', '2001:db8:1:200::/56', '192.168.1.7/32']
    """
    if any(address in net for net in _INDOORS if net.version == address.version):
        return f"{address}/{address.max_prefixlen}"
    return str(ipaddress.ip_network((address, 24 if address.version == 4 else _HOME_BITS), strict=False))


@lru_cache(4096)
def wider_network(network: str) -> str | None:
    """The /48 that contains an IPv6 /56; None for any other network. Tunnels and hosts give /48s away for free,
    with 256 such networks each.

    >>> wider_network("2001:db8:1:200::/56"), wider_network("192.0.2.0/24"), wider_network("fd00::7/128")
    ('2001:db8:1::/48', None, None)
    """
    if not network.endswith(f"/{_HOME_BITS}"):
        return None
    return str(ipaddress.ip_network(network).supernet(new_prefix=48))


def networks(network: str) -> list[str]:
    """The network by which an address is counted, and the wider one around it, if there is one."""
    wider = wider_network(network)
    return [network] if wider is None else [network, wider]


def counted_address(remote: str) -> str:
    """The network of a socket's peer address, or UNKNOWN if the address cannot be parsed.

    >>> [counted_address(text) for text in ("192.0.2.77", "2001:db8:1:2ff::1", "::1", "::ffff:192.0.2.7")]
    ['192.0.2.0/24', '2001:db8:1:200::/56', '127.0.0.1/32', '192.0.2.0/24']
    """
    address = parse(remote)
    if address is None:
        return UNKNOWN
    return HERE if address.is_loopback else network(address)


def proxies(texts: Iterable[str]) -> tuple[Network, ...]:
    """Parses addresses and networks as an operator writes them. Raises ValueError with a sentence."""
    found = []
    for text in texts:
        try:
            found.append(ipaddress.ip_network(text.strip(), strict=False))
        except ValueError as error:
            raise ValueError(
                f"{text[:60]!r} is no address and no network, such as 127.0.0.1 or 10.0.0.0/8."
            ) from error
    return tuple(found)


def scheme(headers: Mapping[str, str]) -> str | None:
    """The client's protocol according to the proxy's header: "https", "http" or None."""
    said = headers.get("X-Forwarded-Proto", "").strip().lower()
    return said if said in ("http", "https") else None
