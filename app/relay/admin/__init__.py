"""The operators' side: routes of the HTML pages, bans, and the relay's state."""
