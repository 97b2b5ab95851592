"""Facts about the computer: input idle time, power, screen, load, heat, and starting at login.

Every fact has a small interface with one class per platform and a null version; what cannot be found out is
unknown, and the rules (app.node.rules.rules) take unknown for "in use". No Qt in here, and nothing that talks
to a network.
"""

from app.desktop.choose import autostart
from app.desktop.facts import DesktopFacts
from app.desktop.gather import FactRow, Gatherer
from app.desktop.login import Autostart, AutostartError

__all__ = ["Autostart", "AutostartError", "DesktopFacts", "FactRow", "Gatherer", "autostart"]
