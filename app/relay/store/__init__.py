"""The groups that a relay stores, a window of recent ones and an archive of a day, behind one interface with
three backings, and the batches drawn from them."""
