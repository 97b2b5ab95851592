"""The helpers that every room needs, once: files that are whole or not there, foreign text made safe to show,
waits between attempts, rates, and fetching a file. It imports nothing of app but itself;
tests/common/test_once.py finds anyone who makes one of these again."""
