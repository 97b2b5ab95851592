"""The groups that a relay stores: the window of recent ones, the archive of a day, and the batches drawn from
them."""
