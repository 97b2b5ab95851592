"""The commands, one file each: SUMMARY, add_arguments(parser) and main(args) -> exit code.

A file here is a command; there is no other list of them. Commands are imported when they run, so `shoal
--help` stays quick and imports no torch. Exit codes: 0 done, 1 failed (one sentence on standard error), 2
wrong usage.
"""
