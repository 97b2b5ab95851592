"""The node's part in a swarm: which one it joins, what it gives and takes, and a relay of its own."""
