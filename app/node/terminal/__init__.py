"""Views of a node without a window: the live terminal view, plain lines, and a view of several nodes."""
