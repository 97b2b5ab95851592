"""The operators' side: the routes of the pages, bans, and the relay's state."""
