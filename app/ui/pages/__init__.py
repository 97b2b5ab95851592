"""The pages. Each is a function of one View (`show_view`) and asks for things only through `Actions`."""

from app.ui.pages.frame import Actions, Page

__all__ = ["Actions", "Page"]
