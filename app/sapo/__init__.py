"""The algorithm: questions, scoring, groups, advantages and recipes.

Pure functions and data. No Qt, no sockets, no torch; the only process it starts is the scoring sandbox.
"""
