"""Which certificate authorities this computer trusts, for everything of ours that speaks TLS.

An installed app brings its own OpenSSL, which looks for them where they were on the computer it was built on.
Here they are where this system has them: in the stores of Windows and macOS, and on Linux in a file that every
family of distributions keeps elsewhere. SSL_CERT_FILE and SSL_CERT_DIR take precedence."""

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
def context() -> ssl.SSLContext:
    """For a client: checks certificates and names. Shared; nobody may change it."""
    return _of_the_system() if sys.platform in ("win32", "darwin") else of_files(BUNDLES)


def of_files(bundles: Sequence[str]) -> ssl.SSLContext:
    """What OpenSSL finds by itself or was told, else the first of `bundles` that can be read."""
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


def problem(error: ssl.SSLError, host: str) -> str:
    """Why a certificate was not accepted, and what to do, as a sentence."""
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
    named = any(os.environ.get(name) for name in VARIABLES)
    return named or sys.platform in ("win32", "darwin") or bool(context().cert_store_stats()["x509_ca"])


def _of_the_system() -> ssl.SSLContext:
    """Checked by Windows or macOS itself: what is trusted there, by company policy too, is trusted here."""
    try:
        import truststore
    except ImportError:  # Windows' store as far as it is filled; macOS's is out of OpenSSL's reach
        return ssl.create_default_context()
    made: ssl.SSLContext = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if named := os.environ.get("SSL_CERT_FILE"):
        made.load_verify_locations(named)
    return made


def system_proxy() -> str:
    """The proxy that the environment or the system names, empty without one. May contain a password."""
    proxies = urllib.request.getproxies()
    proxy = proxies.get("https") or proxies.get("all") or ""
    return proxy if "://" in proxy or not proxy else f"http://{proxy}"


def without_password(proxy: str) -> str:
    """
    >>> without_password("http://ann:secret@proxy:3128")
    'http://proxy:3128'
    """
    before, at, after = proxy.rpartition("@")
    return f"{before.partition('://')[0]}://{after}" if at else proxy
