"""What happened, kept: checkpoints, the history in SQLite, and what is read out of them."""
