"""The window's settings, each declared once (app.node.rules.setting). Choices are stored in HOME/window.json,
the window's own memory (its size, the last page) in HOME/window-state.json. Both files are replaced as a whole;
a damaged one is set aside and the defaults apply.

The six words of a private swarm are kept in a file that only its owner may read."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import msgspec

from app.common import files
from app.models.catalogue import full_name
from app.node.rules.setting import PROBE_EVERY, Setting, expected_value, refusal_sentence
from app.ui.language.texts import available_languages, mark
from engines.facts import ENGINES

SETTINGS: tuple[Setting, ...] = (
    Setting(
        key="theme",
        kind="choice",
        default="system",
        group=mark("Appearance"),
        label=mark("Colours"),
        help=mark("Light, dark, or like the rest of your desktop."),
        words=mark("dark mode theme night"),
        options=(("system", mark("Follow the system")), ("light", mark("Light")), ("dark", mark("Dark"))),
    ),
    Setting(
        key="language",
        kind="choice",
        default="system",
        group=mark("Appearance"),
        label=mark("Language"),
        help=mark("For the window, the tray, and errors in a terminal. Applies when you reopen Shoal."),
        reopens=True,
        words=mark("translation english german deutsch sprache"),
        options=(("system", mark("Follow the system")), *available_languages()),
    ),
    Setting(
        key="learn_at_start",
        kind="switch",
        default=True,
        group=mark("Learning"),
        label=mark("Learn as soon as Shoal opens"),
        help=mark("Off: it waits until you start it. After a pause it always waits for you."),
        words=mark("autostart begin automatic"),
    ),
    Setting(
        key="company",
        kind="choice",
        default="alone",
        group=mark("Learning"),
        label=mark("Learn alone or together"),
        help=mark(
            "Alone, nothing leaves this computer. With others, only puzzle answers are shared, as plain text."
        ),
        words=mark("swarm solo peers relay network share offline"),
        options=(("alone", mark("Alone")), ("others", mark("With others"))),
    ),
    Setting(
        key="recipe",
        kind="choice",
        default="default",
        group=mark("Learning"),
        label=mark("Recipe"),
        help=mark(
            "How your model learns from answers. Recommended is what Shoal is tuned for; Paper follows "
            "SAPO exactly."
        ),
        words=mark("algorithm sapo grpo loss"),
        restarts=True,
        options=(("default", mark("Recommended")), ("faithful", mark("Paper"))),
    ),
    Setting(
        key="model",
        kind="text",
        default="starter",
        group=mark("Learning"),
        label=mark("Model"),
        help=mark("The model that learns. Each one has its own history and keeps what it learned."),
        words=mark("base weights qwen llama smollm choose"),
    ),
    Setting(
        key="engine",
        kind="choice",
        default="auto",
        group=mark("Learning"),
        label=mark("Engine"),
        help=mark("The program that answers and learns. Shoal picks the fastest one here; {doctor} says why."),
        words=mark("torch pytorch llama llamacpp mlx gpu cuda metal speed"),
        restarts=True,
        options=(
            ("auto", mark("Chosen for this computer")),
            *((name, engine.title) for name, engine in ENGINES.items()),
        ),
    ),
    Setting(
        key="probe_every",
        kind="number",
        default=PROBE_EVERY,
        least=1,
        most=1000,
        group=mark("Learning"),
        label=mark("Rounds between measurements"),
        help=mark("How often the curve gets a new point. Each takes about as long as a round."),
        words=mark("probe held-out curve points"),
        restarts=True,
    ),
    Setting(
        key="mirror",
        kind="text",
        default="",
        group=mark("Learning"),
        label=mark("Download models from"),
        help=mark("A mirror's address; empty means huggingface.co. Shoal uses the proxy in HTTPS_PROXY."),
        words=mark("download hub hugging face endpoint proxy"),
    ),
    Setting(
        key="serve_allows",
        kind="names",
        default=[],
        group=mark("Learning"),
        label=mark("Other pages that may ask your model"),
        help=mark(
            "Programs that show web pages, such as app://obsidian.md. Applies when you next let programs use "
            "your model."
        ),
        words=mark("origin cors extension browser endpoint server docker program"),
    ),
    Setting(
        key="close_to_tray",
        kind="switch",
        default=True,
        group=mark("Window"),
        label=mark("Keep learning when the window is closed"),
        help=mark("Shoal stays in the tray. Without a tray, it asks before closing."),
        words=mark("tray background quit hide close"),
    ),
    Setting(
        key="start_at_login",
        kind="switch",
        default=False,
        group=mark("Window"),
        label=mark("Start Shoal when I log in"),
        help=mark("Starts in the tray, without a window."),
        words=mark("autostart login boot session automatic"),
        elsewhere=True,
    ),
    Setting(
        key="updates",
        kind="switch",
        default=False,
        group=mark("Engine and updates"),
        label=mark("Check for updates once a day"),
        help=mark(
            "Off: Shoal never checks on its own. On: only while this window is open and it doesn't "
            "learn alone. Nothing is downloaded or installed without you."
        ),
        words=mark("update upgrade release version check download"),
    ),
    Setting(
        key="tell_failures",
        kind="switch",
        default=True,
        group=mark("Window"),
        label=mark("Tell me when a problem stops learning"),
        help=mark("The only notification there is."),
        words=mark("notifications alerts messages"),
    ),
)


class WindowMemory(msgspec.Struct, kw_only=True):
    """What the window remembers without being told: not a setting that people see."""

    version: int = 1
    asked: bool = False
    """Whether the person has ever started learning."""
    willing: bool = True
    """Whether the model learns whenever nobody uses the computer; a pause does not change that."""
    tray_told: bool = False
    """Whether the person was told that closing the window does not end Shoal."""
    updates_asked: bool = False
    """Whether the person has decided if Shoal may check for new versions."""
    updates_hidden: str = ""
    """The version that the overview no longer mentions."""
    engine_not_now: str = ""
    """The version of an engine that the overview does not offer again."""
    questions: tuple[str, ...] = ()
    """Question sets that are learned, by the hashes of their contents."""
    waits: tuple[str, ...] = ()
    """Question sets that are learned once a model is chosen that reads."""
    page: str = "overview"
    geometry: str = ""


class Choices:
    """Settings by key, with defaults; `put` saves at once. A newer version's settings stay unchanged."""

    def __init__(self, home: Path) -> None:
        self._path, self._state_path = home / "window.json", home / "window-state.json"
        self._values: dict[str, Any] = {}
        found = files.read_or_set_aside(self._path, dict[str, Any])[0]
        known = {setting.key for setting in SETTINGS}
        self._others = {key: value for key, value in (found or {}).items() if key not in known}
        for setting in SETTINGS:
            value = setting.default if setting.elsewhere else (found or {}).get(setting.key, setting.default)
            self._values[setting.key] = setting.default if expected_value(setting, value) else value
        self.opened_with = dict(self._values)
        """What held when the window opened: some settings apply only then."""
        self.memory = files.read_or_set_aside(self._state_path, WindowMemory)[0] or WindowMemory()

    def __getitem__(self, key: str) -> Any:
        value = self._values[key]
        return full_name(value) if key == "model" else value

    def put(self, key: str, value: Any) -> None:
        """Saves a setting. Raises ValueError for a value that it does not allow, OSError if saving fails."""
        setting = next(setting for setting in SETTINGS if setting.key == key)
        if wrong := refusal_sentence(setting, value):
            raise ValueError(wrong)
        self._values[key] = value
        kept = sorted(setting.key for setting in SETTINGS if not setting.elsewhere)
        files.write_json(self._path, {**self._others, **{key: self._values[key] for key in kept}})

    def remember_window(self, **fields: object) -> None:
        """Saves fields of the window's memory. Raises OSError if they cannot be saved."""
        for name, value in fields.items():
            setattr(self.memory, name, value)
        files.write_json(self._state_path, self.memory)


FILE = "private-swarm.secret"
_LONGEST = 200


class PrivateWords:
    """`text` holds the six words, empty if the file has none or cannot be read."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE
        self.text = ""
        with contextlib.suppress(OSError, UnicodeDecodeError), self._path.open(encoding="ascii") as file:
            self.text = file.read(_LONGEST).strip()

    def put(self, words: str) -> None:
        """Replaces the stored words; "" deletes them. Raises OSError."""
        if words:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            files.write(self._path, words.encode() + b"\n", private=True)
        else:
            self._path.unlink(missing_ok=True)
        self.text = words
