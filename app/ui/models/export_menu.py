"""The menu that takes away what a model or a skill has learned: into a program that is on this computer, or as
files into a folder that the person picks."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from shutil import which

from PySide6.QtWidgets import QFileDialog, QMenu, QPushButton

from app.models.found import lm_studio_folder
from app.ui.language.texts import tr
from app.ui.process.models import INTO_OLLAMA


class ExportMenu(QMenu):
    """The menu of `parent`. `name` is what a new folder is called; `take` gets a format of ModelControl.export,
    and the folder to write."""

    def __init__(self, parent: QPushButton, name: Callable[[], str], take: Callable[[str, str], None]) -> None:
        super().__init__(parent)
        self._name, self._take = name, take
        self._studio = self.addAction(tr("Into LM Studio"), self._to_studio)
        self._ollama = self.addAction(tr("Into Ollama"), self._to_ollama)
        for form, text in (
            ("ollama", tr("For Ollama …")),
            ("ollama", tr("The whole model as GGUF, for llama.cpp and others …")),
            ("gguf", tr("As a LoRA adapter for llama.cpp (GGUF) …")),
            ("peft", tr("What it learned as a LoRA adapter (PEFT) …")),
            ("merged", tr("The whole model, for transformers …")),
        ):
            self.addAction(text).triggered.connect(lambda _=False, form=form: self._to_folder(form))
        self.aboutToShow.connect(self._look)
        parent.setMenu(self)

    def _look(self) -> None:
        """Offers the programs that are here now."""
        self._studio.setVisible(lm_studio_folder() is not None)
        self._ollama.setVisible(which("ollama") is not None)

    def _to_studio(self) -> None:
        """Exports to LM Studio's folder for the model: publisher, model, file."""
        if (above := lm_studio_folder()) is not None:
            self._take("ollama", str(above / "shoal" / self._name()))

    def _to_ollama(self) -> None:
        """Exports to a temporary folder for Ollama, which keeps a copy."""
        self._take(INTO_OLLAMA, str(Path(tempfile.mkdtemp(prefix="shoal-ollama-")) / self._name()))

    def _to_folder(self, form: str) -> None:
        above = QFileDialog.getExistingDirectory(self, tr("Where to save the export"), str(Path.home()))
        if above:
            self._take(form, str(Path(above) / f"{self._name()}-{form}"))
