"""The checks that peers' groups pass before they are learned from."""
