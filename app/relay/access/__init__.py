"""Who may connect and sign in, and how much one key or address may do."""
