"""Facts about the computer: input idle time, power, full-screen programs, load, temperature, and starting at
login.

Every fact has a small interface with one class per platform and a null version. What cannot be read is unknown,
and the rules (app.node.rules.rules) treat unknown as "in use". No Qt and no network here."""

from app.desktop.choose import autostart
from app.desktop.facts import DesktopFacts
from app.desktop.gather import FactRow, Gatherer
from app.desktop.login import Autostart, AutostartError

__all__ = ["Autostart", "AutostartError", "DesktopFacts", "FactRow", "Gatherer", "autostart"]
