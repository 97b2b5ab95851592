"""When to run, and how much: the owner's settings, orders and hours, and the one decision that follows from
them."""
