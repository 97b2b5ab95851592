"""The energy that learning takes, in one line: on the overview, and with its formula in the settings."""

from __future__ import annotations

from app.node.record.snapshot import Energy
from app.ui.language.spoken import spoken
from app.ui.language.texts import number, tr
from app.ui.widgets.pieces import Label

LEAST_WATTS = 0.05
"""The power below which it is as good as none."""
LEAST_KWH = 0.001
"""The energy of a month below which there is nothing to tell."""


class PowerLine(Label):
    """Says nothing before there is something to count."""

    def __init__(self, whole: bool = False) -> None:
        super().__init__("", "faint", wrap=whole)
        self._whole = whole
        self.hide()

    def show_energy(self, energy: Energy | None) -> None:
        counted = (
            energy is not None
            and bool(energy.about)
            and (energy.month_kwh >= LEAST_KWH or energy.watts >= LEAST_WATTS)
        )
        self.setVisible(counted)
        if energy is None or not counted:
            return
        about = spoken(energy.about)
        self.say(f"{in_short(energy)} {about}" if self._whole else in_short(energy))
        self.setToolTip("" if self._whole else about)
        self.setAccessibleName(f"{in_short(energy)} {about}")


def in_short(energy: Energy) -> str:
    """Power now, where it takes any, energy this month, where there is any, and its price."""
    watts = number(energy.watts, 1 if energy.watts < 5 else 0)
    kwh = number(energy.month_kwh, 3 if energy.month_kwh < 1 else 1)
    now = energy.watts >= LEAST_WATTS
    if energy.month_kwh < LEAST_KWH:
        return tr("About {watts} W now.", watts=watts)
    if energy.money:
        amount, _, currency = energy.money.partition(" ")
        money = f"{number(float(amount), 2)} {currency}"
        if now:
            return tr("About {watts} W now, {kwh} kWh this month ({money}).", watts=watts, kwh=kwh, money=money)
        return tr("About {kwh} kWh this month ({money}).", kwh=kwh, money=money)
    if now:
        return tr("About {watts} W now, {kwh} kWh this month.", watts=watts, kwh=kwh)
    return tr("About {kwh} kWh this month.", kwh=kwh)
