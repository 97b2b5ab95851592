"""Connections to hosts: the certificate authorities that this computer trusts, and HTTP requests to a file host
with proxies, limits, and errors as sentences for the user."""

from __future__ import annotations

import functools
import os
import re
import ssl
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from urllib.parse import urljoin, urlsplit

import aiohttp

from app.common.rate import RetryLimit

BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch, Gentoo
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # RHEL 7 and later
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/var/lib/ca-certificates/ca-bundle.pem",  # openSUSE
    "/etc/ssl/certs/ca-bundle.crt",  # NixOS
    "/etc/pki/tls/cacert.pem",  # OpenELEC
    "/etc/ssl/cert.pem",  # Alpine
)
VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


@functools.cache
def tls_context() -> ssl.SSLContext:
    """Returns the TLS context of every TLS connection Shoal makes, which checks certificates and host names.
    Cached and shared: callers must not change it.

    An installed app brings its own OpenSSL, which looks for authorities at the paths of the computer it was
    built on. This uses the system's own: the stores of Windows and macOS, and on Linux the bundle file, whose
    path differs between families of distributions. SSL_CERT_FILE and SSL_CERT_DIR take precedence."""
    return _system_context() if sys.platform in ("win32", "darwin") else context_of(BUNDLES)


def context_of(bundles: Sequence[str]) -> ssl.SSLContext:
    """Returns a context with the authorities that OpenSSL finds by itself or that SSL_CERT_FILE or SSL_CERT_DIR
    names; if it finds none, with those of the first readable file in `bundles`."""
    made = ssl.create_default_context()
    if made.cert_store_stats()["x509_ca"] or any(os.environ.get(name) for name in VARIABLES):
        return made
    for path in bundles:
        try:
            made.load_verify_locations(path)
        except (OSError, ssl.SSLError):
            continue
        if made.cert_store_stats()["x509_ca"]:
            break
    return made


def certificate_problem(error: ssl.SSLError, host: str) -> str:
    """Returns a sentence that says why the certificate of `host` was rejected and what to do."""
    code = getattr(error, "verify_code", 0)
    if code in (9, 10):  # X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED
        when = "not valid yet" if code == 9 else "no longer valid"
        return (
            f"The certificate of {host} is {when}, by this computer's clock: set the clock, then try again. "
            "If it is right, try again later."
        )
    if code in (18, 19, 20, 21) and not _any_authorities():
        return (
            f"The certificate of {host} can't be checked: this system has no list of authorities. "
            "Install the package ca-certificates, then try again."
        )
    return (
        f"The certificate of {host} isn't trusted here. On a public network, log in with a browser first. "
        "Behind a company's proxy, name its certificate file in SSL_CERT_FILE. Then try again."
    )


def _any_authorities() -> bool:
    """Returns whether any authorities are available, so that a failed check can be the certificate's fault."""
    named = any(os.environ.get(name) for name in VARIABLES)
    return named or sys.platform in ("win32", "darwin") or bool(tls_context().cert_store_stats()["x509_ca"])


def _system_context() -> ssl.SSLContext:
    """Returns a context whose checks Windows or macOS makes itself, so authorities added by company policy are
    trusted too."""
    try:
        import truststore
    except ImportError:  # Windows' store as far as it is filled; macOS's is out of OpenSSL's reach
        return ssl.create_default_context()
    made: ssl.SSLContext = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if named := os.environ.get("SSL_CERT_FILE"):
        made.load_verify_locations(named)
    return made


def system_proxy() -> str:
    """Returns the URL of the proxy set in the environment or the system, "" without one. May contain a
    password."""
    proxies = urllib.request.getproxies()
    proxy = proxies.get("https") or proxies.get("all") or ""
    return proxy if "://" in proxy or not proxy else f"http://{proxy}"


def without_password(proxy: str) -> str:
    """Returns the proxy URL without the user name and password.
    >>> without_password("http://ann:secret@proxy:3128")
    'http://proxy:3128'
    """
    before, at, after = proxy.rpartition("@")
    return f"{before.partition('://')[0]}://{after}" if at else proxy


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
        connector=aiohttp.TCPConnector(ssl=tls_context()),
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
        return Fault(certificate_problem(refused, host), again=False)
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
