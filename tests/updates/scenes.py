"""Every state of a new version as the window can show it. `python -m tests.updates.scenes FOLDER` from the
project's folder, with QT_QPA_PLATFORM=offscreen, takes a picture of each in both themes."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import msgspec

from app.install.updates.asking import UpdateOffer
from app.ui.view.view import UpdateStage, UpdateView

OFFER = UpdateOffer(
    version="0.2.0",
    date="2026-12-01",
    notes={
        "en": ["Learns faster.", "Models with up to 3 billion parameters fit into 16 GB of memory."],
        "de": ["Lernt schneller.", "Modelle mit bis zu 3 Milliarden Parametern passen in 16 GB Speicher."],
    },
    page="https://example.org/shoal",
)
_REQUEST = """GET /shoal/shoal-release.json.sig HTTP/1.1
Host: example.org
User-Agent: shoal
Accept: */*
Accept-Encoding: identity"""


def scenes() -> dict[str, UpdateView]:
    base = UpdateView(
        version="0.1.0", stage=UpdateStage.IDLE, host="example.org", request=_REQUEST, wanted=True
    )

    def made(**fields: object) -> UpdateView:
        return msgspec.structs.replace(base, **fields)

    there = {"offer": OFFER, "answered": time.time() - 3 * 3600 - 60}
    return {
        "checkout": UpdateView(version="0.1.0"),
        "never": made(wanted=False),
        "newest": made(answered=there["answered"], wanted=False),
        "asking": made(stage=UpdateStage.ASKING),
        "there": made(**there),
        "cut": made(
            **there,
            sentence="example.org can't be reached: check the network connection, "
            "then try again. Nothing is lost.",
        ),
    }


def main(folder: Path) -> None:
    from PySide6.QtWidgets import QApplication

    from app.ui.shell.window import MainWindow
    from app.ui.theme import Theme
    from tests.ui import views
    from tests.ui.pictures import actions

    application = QApplication.instance() or QApplication([])
    assert isinstance(application, QApplication)
    folder.mkdir(parents=True, exist_ok=True)

    def take(window: MainWindow, name: str) -> None:
        for _ in range(4):
            application.processEvents()
        window.grab().save(str(folder / f"{name}.png"))

    for theme in ("light", "dark"):
        window = MainWindow(Theme(application, theme), actions(folder))  # type: ignore[arg-type]
        window.resize(1180, 780)
        window.show()
        for name, update_view in scenes().items():
            window.show_view(views.learning(update_view=update_view))
            window.go("settings")
            page = window._pages["settings"]
            page._find.setText("upgrade")  # type: ignore[attr-defined]
            take(window, f"settings-{name.replace(' ', '-')}-{theme}")
        page._find.setText("")  # type: ignore[attr-defined]
        there = scenes()["there"]
        undecided = msgspec.structs.replace(scenes()["never"], undecided=True, wanted=False)
        earlier = msgspec.structs.replace(views.learning().runs[0], started=time.time() - 3 * 3600)
        for page_name, name, view in (
            ("overview", "there", views.learning(update_view=there)),
            (
                "overview",
                "question",
                msgspec.structs.replace(views.together(), update_view=undecided, runs=(earlier,)),
            ),
            ("privacy", "alone", views.learning(update_view=there)),
            ("privacy", "off", views.learning(update_view=scenes()["never"])),
            ("privacy", "checkout", views.learning(update_view=scenes()["checkout"])),
        ):
            window.show_view(view)
            window.go(page_name)
            if page_name == "privacy":
                bar = window._pages["privacy"].verticalScrollBar()
                take(window, "settle")
                bar.setValue(bar.maximum())
            take(window, f"{page_name}-{name}-{theme}")
        window.close()
    (folder / "settle.png").unlink(missing_ok=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
