"""The pages. Each shows one View (`show_view`) and requests actions only through `Actions`."""

from app.ui.frame.frame import Actions, Page

__all__ = ["Actions", "Page"]
