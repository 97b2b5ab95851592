"""Starting at login, one file a system."""
