from __future__ import annotations

import pytest
from multidict import CIMultiDict

from app.relay.origin import HERE, LOOPBACK, UNKNOWN, Origins, proxies

HEADER, REAL = "X-Forwarded-For", "X-Real-IP"
TRUSTED = proxies(("127.0.0.1", "10.0.0.0/8", "fd00::/8"))
ANN = "192.0.2.0/24"


@pytest.mark.parametrize(
    ("remote", "headers", "expected"),
    [
        ("192.0.2.7", [], ANN),
        ("192.0.2.7", [(HEADER, "198.51.100.1")], ANN),  # a stranger's words
        ("127.0.0.1", [(HEADER, "192.0.2.7")], ANN),
        ("::ffff:127.0.0.1", [(HEADER, "192.0.2.7")], ANN),
        ("127.0.0.1", [(HEADER, "198.51.100.1, 192.0.2.7")], ANN),  # the left one was forged
        ("127.0.0.1", [(HEADER, "198.51.100.1"), (HEADER, "192.0.2.7, 10.1.2.3")], ANN),  # two proxies
        ("127.0.0.1", [(HEADER, "192.0.2.7:4711")], ANN),
        ("127.0.0.1", [(HEADER, '"[2001:db8:1:2ff::1]:80"')], "2001:db8:1:200::/56"),
        ("10.1.2.3", [(REAL, "192.0.2.7")], ANN),
        ("127.0.0.1", [(HEADER, "192.0.2.7"), (REAL, "192.0.2.7")], ANN),
        ("127.0.0.1", [(HEADER, "192.0.2.7"), (REAL, "10.1.2.3")], ANN),  # the outer proxy, seen by the inner
        ("127.0.0.1", [(HEADER, "198.51.100.1"), (REAL, "192.0.2.7")], UNKNOWN),  # one of them is a lie
        ("127.0.0.1", [], UNKNOWN),
        ("127.0.0.1", [(HEADER, "")], UNKNOWN),
        ("127.0.0.1", [(HEADER, "192.0.2.7, <script>")], UNKNOWN),
        ("127.0.0.1", [(HEADER, "127.0.0.1")], "127.0.0.0/24"),  # never exempt behind a proxy
        ("127.0.0.1", [(HEADER, "10.5.6.7, 10.1.2.3")], "10.5.6.7/32"),
        ("", [], UNKNOWN),
        ("fd00::1", [(HEADER, "192.0.2.7")], ANN),
    ],
)
def test_only_a_trusted_proxy_says_where_a_client_is(
    remote: str, headers: list[tuple[str, str]], expected: str
) -> None:
    assert Origins(TRUSTED).of(remote, CIMultiDict(headers)) == expected


def test_without_proxies_headers_mean_nothing_and_all_of_this_computer_is_one_address() -> None:
    told = CIMultiDict([(HEADER, "192.0.2.7")])
    assert {Origins().of(one, told) for one in ("127.0.0.1", "127.9.8.7", "::1")} == {HERE}
    assert Origins(exempt=True).of("127.9.8.7", told) == LOOPBACK, "its operator says so"


def test_a_proxy_is_an_address_or_a_network() -> None:
    assert [str(net) for net in proxies(("127.0.0.1", " 10.1.2.3/8", "::1"))] == [
        "127.0.0.1/32",
        "10.0.0.0/8",
        "::1/128",
    ]
    for wrong in ("localhost", "", "1.2.3", "10.0.0.0/33"):
        with pytest.raises(ValueError, match="no address"):
            proxies((wrong,))
