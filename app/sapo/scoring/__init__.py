"""Turns completions into rewards, in a sandbox for untrusted text."""
