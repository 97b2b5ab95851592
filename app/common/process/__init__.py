"""How a process of ours manages itself: its priority, its memory limit, its end, and secrets passed to it."""
