"""The window, the only part that uses Qt. It shows one frozen View and sends commands to the node's process. It
never loads a model library.

Importing this package does not load Qt; `app.ui.shell.start` does."""
