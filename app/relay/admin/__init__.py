"""The operators' side: the routes of the pages, bans, and how the relay is doing."""
