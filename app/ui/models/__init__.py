"""The page Models: choosing, fetching and keeping models."""
