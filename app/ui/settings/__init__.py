"""The page Settings: settings, identity, storage and diagnostics."""
