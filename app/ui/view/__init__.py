"""The frozen value that pages show, its construction from the node's lines, and sentences about it."""
