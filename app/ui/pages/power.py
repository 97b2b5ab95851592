"""What learning takes from the socket, in one line: on the overview, and with its formula in the settings."""

from __future__ import annotations

from app.node.snapshot import Energy
from app.ui.spoken import spoken
from app.ui.texts import number, tr
from app.ui.widgets.pieces import Label

_LEAST_KWH = 0.001
"""Less is written as nothing."""


class PowerLine(Label):
    """Says nothing before something was counted."""

    def __init__(self, whole: bool = False) -> None:
        super().__init__("", "faint", wrap=whole)
        self._whole = whole
        self.hide()

    def show_energy(self, energy: Energy | None) -> None:
        counted = energy is not None and bool(energy.about)
        self.setVisible(counted)
        if energy is None or not counted:
            return
        about = spoken(energy.about)
        self.say(f"{in_short(energy)} {about}" if self._whole else in_short(energy))
        self.setToolTip("" if self._whole else about)
        self.setAccessibleName(f"{in_short(energy)} {about}")


def in_short(energy: Energy) -> str:
    """Power now, energy this month, and its price."""
    used = number(energy.month_kwh, 3 if energy.month_kwh < 1 else 1)
    parts = dict(watts=number(energy.watts, 1 if energy.watts < 5 else 0), kwh=used, money=energy.money)
    if energy.month_kwh < _LEAST_KWH:
        return tr("About {watts} W now.", **parts)
    if energy.money:
        return tr("About {watts} W now, {kwh} kWh this month ({money}).", **parts)
    return tr("About {watts} W now, {kwh} kWh this month.", **parts)
