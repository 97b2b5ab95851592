"""The page Overview and its cards."""
