"""What a process of ours does about itself: its priority, its limit on memory, its end, and secrets it is
handed."""
