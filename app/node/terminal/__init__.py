"""A node's views without a window: the live view, plain lines, and a view of several nodes."""
