"""Question sets: an owner's own questions, as a family of puzzles like any other.

`tables` reads files and pasted text, `templates` makes questions from slots, `checks` says when an answer is
right, and `question_set` turns a set into a `Family`. A set stays on this computer: its family's name cannot be
written in the swarm's protocol, and it is not listed among the puzzles that peers know.
"""
