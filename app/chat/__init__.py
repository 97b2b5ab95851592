"""Trying the model out: one question to the base model and to what it became, side by side, and puzzles with
the verdict of the safe scorer, for models and for people.

A process of its own, so that a node's memory and the window's stay theirs. It only reads what a node wrote,
beside a running one too, and opens no network socket.
"""
