"""A client's conversation with the relay, and what all conversations share."""
