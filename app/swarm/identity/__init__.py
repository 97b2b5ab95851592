"""Who a node is: its key, its name, and where the key is kept."""
