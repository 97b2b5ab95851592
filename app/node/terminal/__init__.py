"""What a node shows without a window: the live view, plain lines, and a view of several nodes."""
