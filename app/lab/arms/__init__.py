"""Arms and their records: arms, the journal of a study, and reading it back."""
