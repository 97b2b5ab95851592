"""What is compared and what is recorded: arms, the journal of a study, and reading it back."""
