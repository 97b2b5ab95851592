"""One run of a study, round by round, with what an arm adds to a round."""
