"""The pages. Each is a function of one View (`show_view`) and asks for things only through `Actions`."""

from app.ui.frame.frame import Actions, Page

__all__ = ["Actions", "Page"]
