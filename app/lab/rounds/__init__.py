"""One run of a study, round by round, and the attackers beside its nodes."""
