"""Helpers that every room needs, once: files that are whole or absent, foreign text made safe to show, waits
between attempts, rates, and downloading a file. It imports nothing of app but itself; tests/common/test_once.py
finds second implementations."""
