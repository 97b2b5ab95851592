"""One run of a study, round by round, with the options that an arm adds to a round."""
