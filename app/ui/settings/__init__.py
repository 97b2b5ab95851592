"""The page Settings: editors, identity, storage and diagnostics."""
