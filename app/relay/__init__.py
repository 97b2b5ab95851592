"""The relay: nodes publish their informative groups to it and sample the groups of other nodes.

The core is plain data in memory that takes its clock and random generator as arguments. Window, sampling,
quotas, standing, presence and a client's conversation (`session`) use no sockets, so each rule can be replayed
and tested separately. Only `server` listens."""
