"""Question sets: an owner's own questions, used like a family of puzzles.

`tables` parses files and pasted text, `templates` generates questions from slots, `checks` decides when an
answer is right, and `question_set` turns a set into a `Family`. A set stays on this computer: its family's name
cannot be encoded in the swarm's protocol, and it is not listed among the puzzles that peers know.
"""
