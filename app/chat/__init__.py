"""Trying the model out: one question to the base model and to the trained one, side by side, and puzzles with
the verdict of the safe scorer, for models and for people.

It runs in a process of its own, so that its memory is separate from the node's and the window's. It only reads
what a node wrote, also while that runs, and opens no network socket.
"""
