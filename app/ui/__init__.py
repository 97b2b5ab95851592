"""The window: Qt alone, and Qt nowhere else. It shows one frozen View and sends the node's process commands.

No model library is ever loaded here. Importing this package loads no Qt either; `app.ui.shell.start` does.
"""
