"""Helpers shared by all rooms, each implemented once: atomic file writes, untrusted text made safe to show,
retry waits, rate limits, and file downloads. Imports nothing of app but itself; tests/common/test_once.py finds
second implementations."""
