"""HTTP requests to a file host: session set-up, proxies, certificates, and errors as sentences for the user."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from urllib.parse import urljoin, urlsplit

import aiohttp

from app.common import authorities
from app.common.rate import RetryLimit

READ_BYTES = 2**18
"""Chunk size in bytes when reading a response."""
PROXY_LOGIN = (
    "The proxy asks for a name and a password: put them into its address "
    "(HTTPS_PROXY=http://name:password@proxy:port), then try again."
)


class Fault(Exception):
    """A failed download attempt; the message is a sentence for the user. `again`: retrying may help, otherwise
    only another host can. `damaged`: the content does not match its digest. `gone`: the host has no such file.
    `wait_s`: the host's Retry-After. `status` is the HTTP status, 0 for none, and `code` the host's own error
    word."""

    def __init__(
        self,
        sentence: str,
        *,
        again: bool,
        damaged: bool = False,
        gone: bool = False,
        wait_s: float | None = None,
        status: int = 0,
        code: str = "",
    ) -> None:
        super().__init__(sentence)
        self.again, self.damaged, self.gone, self.wait_s = again, damaged, gone, wait_s
        self.status, self.code = status, code


def session(patience: RetryLimit, headers: Mapping[str, str] | None = None) -> aiohttp.ClientSession:
    """Opens an HTTP session that sends nothing about this computer but the user agent "shoal" and `headers`,
    whose Authorization goes to no other host. Redirects from https to http raise Fault."""
    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(_followed)
    return aiohttp.ClientSession(
        trace_configs=[trace],
        trust_env=True,
        auto_decompress=False,
        headers={"Accept-Encoding": "identity", "User-Agent": "shoal", **(headers or {})},
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=patience.silent_s, sock_read=patience.silent_s),
        connector=aiohttp.TCPConnector(ssl=authorities.default_context()),
    )


async def _followed(_: aiohttp.ClientSession, __: object, hop: aiohttp.TraceRequestRedirectParams) -> None:
    to = urljoin(str(hop.url), hop.response.headers.get("Location") or hop.response.headers.get("URI", ""))
    if hop.url.scheme == "https" and not to.startswith("https://"):
        raise Fault(
            f"{hop.url.host} sends on to an address without encryption ({host_of(to)}), which isn't followed: "
            "try again later, or on another network.",
            again=False,
        )


def check_status(response: aiohttp.ClientResponse, address: str) -> None:
    """Raises Fault unless the response has status 200 or 206 and is not a web page."""
    host, status, code = host_of(address), response.status, response.headers.get("X-Error-Code", "")
    if status in (200, 206):
        if response.content_type == "text/html":
            raise Fault(
                f"A web page came instead of what {host} has: where this network asks for a login, open a "
                "browser and log in, then try again.",
                again=True,
            )
        return
    if status == 407:
        raise _login()
    if status in (404, 410):
        name = urlsplit(address).path.rpartition("/")[2]
        raise Fault(
            f"{host} doesn't have {name} (any more): update Shoal, then try again.",
            again=False,
            gone=True,
            status=status,
            code=code,
        )
    asked = response.headers.get("Retry-After", "")
    raise Fault(
        f"{host} answers {status}: try again later.",
        again=status in (408, 416, 425, 429) or status >= 500,
        wait_s=float(asked) if re.fullmatch(r"[0-9]{1,5}", asked) else None,
        status=status,
        code=code,
    )


def fault(error: Exception, address: str) -> Fault:
    """Converts any network error into a Fault with a sentence for the user."""
    host = host_of(address)
    if isinstance(error, Fault):
        return error
    if isinstance(error, aiohttp.ClientHttpProxyError):
        if error.status == 407:
            return _login()
        return Fault(f"The proxy refuses to connect to {host} ({error.status}): ask who runs it.", again=True)
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return Fault(
            "The proxy can't be reached: check the system's proxy setting, then try again.", again=True
        )
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        refused = error.certificate_error
        refused = refused if isinstance(refused, ssl.SSLError) else ssl.SSLError(str(refused))
        return Fault(authorities.certificate_problem(refused, host), again=False)
    if isinstance(error, aiohttp.ClientSSLError):
        return Fault(
            f"{host} doesn't answer as it should: where this network asks for a login, log in with a browser, "
            "then try again.",
            again=True,
        )
    if isinstance(error, aiohttp.InvalidURL):
        return Fault(f"{address[:200]!r} is no address: check it.", again=False)
    if isinstance(error, aiohttp.ClientConnectionError | TimeoutError | OSError) and not isinstance(
        error, aiohttp.ServerDisconnectedError | aiohttp.ServerTimeoutError
    ):
        return Fault(
            f"{host} can't be reached: check the network connection, then try again. Nothing is lost.",
            again=True,
        )
    return Fault(
        f"The connection to {host} broke off. Nothing is lost: try again.",
        again=True,
    )


def _login() -> Fault:
    return Fault(PROXY_LOGIN, again=False)


def host_of(address: str) -> str:
    """Returns the host name of a URL, or its first 100 characters if it has none."""
    return urlsplit(address).hostname or address[:100]
