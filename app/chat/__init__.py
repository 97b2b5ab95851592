"""Lets the user try the model: one question answered by the base model and the trained one side by side, and
puzzles with the verdict of the sandboxed scorer, for models and for people.

Runs in its own process, so that its memory is separate from the node's and the window's. It reads the node's
files, even while the node runs, never changes them, and opens no network socket."""
