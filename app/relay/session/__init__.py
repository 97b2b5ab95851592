"""A client's conversation with the relay, and the state shared by all conversations."""
