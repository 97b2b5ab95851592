"""Facts about the computer: input idle time, power, screen, load, heat, and starting at login.

Every fact has a small interface with one file per platform and a null version; what cannot be found out is
unknown, and the rules (app.node.rules.rules) take unknown for "in use". No Qt in here, and nothing that talks
to a network.
"""

from app.desktop.autostart.autostart import Autostart, AutostartError
from app.desktop.choose import autostart
from app.desktop.facts.facts import DesktopFacts
from app.desktop.gather import FactRow, Gatherer

__all__ = ["Autostart", "AutostartError", "DesktopFacts", "FactRow", "Gatherer", "autostart"]
