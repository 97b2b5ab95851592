"""The certificate authorities this computer trusts, for every TLS connection Shoal makes.

An installed app brings its own OpenSSL, which looks for authorities at the paths of the computer it was built
on. This module uses this system's own: the stores of Windows and macOS, and on Linux the bundle file, whose
path differs between families of distributions. SSL_CERT_FILE and SSL_CERT_DIR take precedence."""

from __future__ import annotations

import functools
import os
import ssl
import sys
import urllib.request
from collections.abc import Sequence

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
def default_context() -> ssl.SSLContext:
    """Returns the TLS context for clients, which checks certificates and host names. Cached and shared: callers
    must not change it."""
    return _of_the_system() if sys.platform in ("win32", "darwin") else context_of_files(BUNDLES)


def context_of_files(bundles: Sequence[str]) -> ssl.SSLContext:
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
    if code in (18, 19, 20, 21) and not _any():
        return (
            f"The certificate of {host} can't be checked: this system has no list of authorities. "
            "Install the package ca-certificates, then try again."
        )
    return (
        f"The certificate of {host} isn't trusted here. On a public network, log in with a browser first. "
        "Behind a company's proxy, name its certificate file in SSL_CERT_FILE. Then try again."
    )


def _any() -> bool:
    """Returns whether any authorities are available, so that a failed check can be the certificate's fault."""
    named = any(os.environ.get(name) for name in VARIABLES)
    return named or sys.platform in ("win32", "darwin") or bool(default_context().cert_store_stats()["x509_ca"])


def _of_the_system() -> ssl.SSLContext:
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


def without_credentials(proxy: str) -> str:
    """Returns the proxy URL without the user name and password.
    >>> without_credentials("http://ann:secret@proxy:3128")
    'http://proxy:3128'
    """
    before, at, after = proxy.rpartition("@")
    return f"{before.partition('://')[0]}://{after}" if at else proxy
