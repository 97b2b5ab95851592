"""Which language the window speaks: one with a translators' file, or English, which needs none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

from app.ui.language.texts import CONTEXT

FOLDER = Path(__file__).parents[3] / "resources" / "translations"
SOURCE = "en"


def offered() -> list[tuple[str, str]]:
    """(code, the language's own name) of every language that there is, English first."""
    codes = sorted(path.stem.removeprefix(f"{CONTEXT}_") for path in FOLDER.glob(f"{CONTEXT}_*.qm"))
    return [(SOURCE, "English"), *((code, _capital(QLocale(code).nativeLanguageName())) for code in codes)]


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]


def choose(wanted: Iterable[str], there: Sequence[str]) -> str:
    """The first wanted language that is there, also as that of another country; English where none is.

    >>> choose(["de-AT", "de", "en"], ["en", "de"]), choose(["en-US", "en", "de"], ["en", "de"])
    ('de', 'en')
    >>> choose([], ["en"])
    'en'
    """
    for name in wanted:
        code = name.replace("-", "_")
        for known in (code, code.split("_")[0]):
            if known in there:
                return known
    return SOURCE


def speak(application: QCoreApplication, setting: str) -> str:
    """Loads texts, Qt's own ones, and the way numbers and days are written. "system" is the desktop's language.
    Returns the code of what is spoken."""
    wanted = QLocale.system().uiLanguages() if setting == "system" else [setting]
    spoken = choose(wanted, [code for code, _ in offered()])
    if not QLocale.system().name().startswith(spoken):  # else the country's own ways stay
        QLocale.setDefault(QLocale(spoken))
    qt = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    for name, folder in ((CONTEXT, str(FOLDER)), ("qtbase", qt)):
        translator = QTranslator(application)
        if spoken != SOURCE and translator.load(f"{name}_{spoken}", folder):
            application.installTranslator(translator)
    return spoken
