"""The algorithm: questions, scoring, groups, advantages, mixing and recipes.

Pure functions and data. No Qt, no sockets, no torch; the only process it starts is the scoring sandbox.
"""
