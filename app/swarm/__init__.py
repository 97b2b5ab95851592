"""A node's part in a swarm: the wire protocol, its identity, its relay connection and the checks of peers'
groups.

All received data is checked, and every invalid message is refused for one reason (`Refused`). Nothing here
depends on engines, windows or rounds. `membership` is what a node and the `library` for other trainers share.
PROTOCOL.md describes the wire for other clients."""
