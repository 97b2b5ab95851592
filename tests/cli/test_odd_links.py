"""Links come from pages and messages: whatever they are, they are one argument, and at most a question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.cli import __main__ as cli
from app.common.process.surroundings import FROM_STDIN
from app.swarm.invite.invite import InviteError, invite_from_text

RIGHT = "shoal://join/ws/192.168.1.20:8777?swarm=shoal&relay=192.168.1.20:8777"
ODD = [
    "shoal://--help",
    "shoal://-h",
    "--help",
    "-h",
    "--quit",
    "--join",
    "--join=shoal://join/ws/evil.example",
    "--home=/etc",
    "--theme=dark",
    "--",
    "-",
    "shoal:",
    "shoal://",
    "shoal://join/",
    "shoal://join/ws/",
    "shoal://join/ws/a b",
    "shoal://join/ws/relay.example --join shoal://join/ws/evil.example",
    'shoal://join/ws/relay.example" --join "shoal://join/ws/evil.example',
    "shoal://join/ws/relay.example%20--join%20x",
    "shoal://join/ws/%72elay.example",
    "shoal://join/ws/relay.example%00",
    "shoal://join/ws/relay.example\x00",
    "shoal://join/ws/relay.example\x1b[2J",
    "shoal://join/ws/relay.example\r\nHost: other",
    "shoal://join/ws/relay.example\u202egpj.exe",
    "shoal://join/ws/relay.example\ud83d",
    "shoal://join/ws/user:word@relay.example",
    "shoal://join/ws/relay.example/../../x",
    "shoal://join/ws/relay.example:99999",
    "shoal://join/ws/0x7f000001",
    "shoal://join/file/etc/passwd",
    "SHOAL://JOIN/WS/relay.example",
    "shoal://join/ws/" + "a" * 100_000,
    "shoal://join/ws/relay.example?" + "token=x&" * 10_000,
    "javascript:alert(1)",
    "file:///etc/passwd",
    "quit",
    "\x04",
    "\x04 \x04",
    " \x04\x04 \x04 ",
    "\udcff\udcfe",
    "   ",
    "\n",
]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What the window would be opened with: home, theme, background, join, link."""
    seen: list[tuple[Any, ...]] = []
    from app.ui.shell import display, start

    monkeypatch.setattr(display, "obstacle", lambda *_, **__: "")
    monkeypatch.setattr(start, "run", lambda *words: seen.append(words) or 0)
    return seen


@pytest.mark.parametrize("link", ODD, ids=range(len(ODD)))
def test_behind_the_dashes_everything_is_a_link(link: str, opened: list[tuple[Any, ...]]) -> None:
    """As the desktop entry and the registry hand it over. Nothing of it becomes an option."""
    assert cli.main(["window", "--", link]) == 0
    ((_, theme, background, join, seen),) = opened
    assert (theme, background, join) == (None, False, None)
    assert seen == ("" if link == FROM_STDIN else link)


def test_without_a_link_the_window_just_opens(opened: list[tuple[Any, ...]]) -> None:
    assert cli.main(["window", "--"]) == 0 and opened[0][4] == ""


def test_what_a_quotation_mark_breaks_off_is_no_option(
    capsys: pytest.CaptureFixture[str], opened: list[Any]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["window", "--", "shoal://x", "--join", "shoal://join/ws/evil.example"])
    assert ended.value.code == 2 and not opened and "does not know" in capsys.readouterr().err


@settings(max_examples=300)
@given(st.one_of(st.text(max_size=300), st.text(max_size=200).map(lambda text: f"shoal://join/{text}")))
def test_whatever_a_link_is_it_names_a_relay_or_is_refused(link: str) -> None:
    try:
        invite = invite_from_text(link)
    except InviteError as error:
        said = str(error)
        assert said.endswith(".") and said.isprintable() and len(said) < 400
    else:
        assert invite.url.startswith(("ws://", "wss://")) and invite.url.isprintable()


def test_the_window_asks_about_right_ones_and_refuses_the_others(qapp: Any) -> None:
    """The dialog itself: plain text, no as the answer that a key press gives."""
    from PySide6.QtCore import Qt
    from PySide6.QtWidgets import QMessageBox, QWidget

    from app.ui.widgets.invite import ask_to_join

    parent, joined = QWidget(), []
    for link in [*ODD, RIGHT]:
        box = ask_to_join(parent, link, joined.append)
        assert box.textFormat() is Qt.TextFormat.PlainText and len(box.informativeText()) < 500
        names = [box.buttonRole(one) for one in box.buttons()]
        asks = QMessageBox.ButtonRole.AcceptRole in names
        assert asks == (link in (RIGHT, "SHOAL://JOIN/WS/relay.example")), link
        if asks:
            assert (
                box.defaultButton() is not None
                and box.buttonRole(box.defaultButton()) is not QMessageBox.ButtonRole.AcceptRole
            )
        box.reject()
    assert joined == []


def test_the_running_window_hears_links_as_one_line_and_never_as_an_order(qapp: Any, tmp_path: Path) -> None:
    from app.ui.shell.single import Single

    first = Single(tmp_path)
    heard: list[str] = []
    first.asked.connect(heard.append)
    ended: list[object] = []
    first.asked_to_end.connect(lambda: ended.append(1))
    second = Single(tmp_path)
    assert first.taken and not second.taken
    for link in ODD:
        heard.clear()
        assert second.raise_other(link)
        for _ in range(2000):
            qapp.processEvents()
            if heard or ended:
                break
        assert len(heard) == 1 and "\n" not in heard[0] and len(heard[0]) <= 4096
    assert not ended
    first.release()
