"""Tool tips are plain text. Qt takes what looks like HTML for HTML, and words of a relay or a peer may stand in
them: `<img src=...>` would load a file of this computer."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QToolTip, QWidget


def plain(text: str) -> str:
    """What shows exactly `text` where Qt might read HTML; anything else as it is.

    >>> plain("64 answers"), plain("2 < 3\\n<img src=x>")
    ('64 answers', '<p style="white-space:pre-wrap">2 &lt; 3\\n&lt;img src=x&gt;</p>')
    """
    return f'<p style="white-space:pre-wrap">{escape(text)}</p>' if "<" in text else text


class PlainTips(QObject):
    """An event filter of the whole application: shows every widget's own tip as plain text."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and isinstance(watched, QWidget):
            tip = watched.toolTip()
            if event.type() == QEvent.Type.ToolTip and plain(tip) != tip:
                QToolTip.showText(event.globalPos(), plain(tip), watched)
                return True
        return False
