"""The groups a relay has: the window of recent ones, the archive of a day, and batches made of them."""
