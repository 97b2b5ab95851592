"""The means by which a process of ours looks after itself: its priority, its limit on memory, its end, and
secrets it is handed."""
