"""The page Skills: the owner's tables, what can be done with each, and the puzzles."""
