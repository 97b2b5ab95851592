"""A node's part in a swarm: the wire protocol, its identity and the outbox.

Everything that arrives is data to be checked; every message that is not right is refused with one reason
(`Refused`). Nothing here knows engines, windows or rounds. PROTOCOL.md describes the wire for other clients.
"""
