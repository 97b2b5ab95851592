"""The page Settings: editors, identity, storage, logs and diagnostics."""
