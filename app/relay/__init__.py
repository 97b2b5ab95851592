"""The relay: where nodes leave their informative groups and pick up those of others.

The core is plain data in memory with the clock and the random numbers handed in: window, sampling, quota,
standing, presence and a client's whole conversation (`session`) know no sockets, so every rule can be replayed
and tested by itself. Only `server` listens.
"""
