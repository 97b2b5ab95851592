"""The frozen value that pages show, how it is made of the node's lines, and sentences about it."""
