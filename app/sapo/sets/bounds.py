"""What a file, or a class, can make of a question set: every limit on it, in one place.

A few bytes may stand for gigabytes or hours: a slot that is filled in three hundred times, a range of a billion
numbers, a product of fifty, an exponent, a list in a list in a list. Each limit is compared with what would be
made before it is made, by every reader: tables, templates, sets, sets of a class. Time is bounded by what is
counted here, since the work for each counted thing is bounded too.
"""

from __future__ import annotations

MAX_BYTES = 64 * 2**20
"""Of a file. Larger ones are not read into memory."""
MAX_UNPACKED = 256 * 2**20
"""Bytes of a spreadsheet's parts, and characters of the cells that JSON unfolds to: zip bombs are refused."""
MAX_CELLS = 5_000_000
"""Cells of a table; of a sheet, those of its rectangle, which calamine allocates, empty ones included."""
MAX_GRID_ROWS, MAX_COLUMNS = 200_000, 200
"""Rows that are looked at, and columns: more than a person can choose from."""
MAX_DEPTH = 8
"""Nested objects become columns like a.b.c, to this depth; lists become a text."""
MAX_FROM_ONE = 5000
"""Rows made of one JSON object."""

MAX_ROWS = 50_000
MAX_QUESTION, MAX_TRUTH, MAX_WORK, MAX_NAME, MAX_INSTRUCTION = 6000, 200, 300, 60, 500

MAX_TEMPLATES, MAX_SLOTS, MAX_WORDS = 64, 8, 500
MAX_NUMBER = 10**9  # exact in every reader of JSON
MAX_TEXT, MAX_EXPRESSION = 1000, 120
"""Characters of a template's question, answer and work before slots are filled, and of an expression."""
MAX_FILLED = 8000
"""Characters of a filled question, of its work, and of the contents of its slots together."""
MAX_FILLINGS, SAMPLED_FILLINGS = 4000, 400
"""At most as many ways to fill a set's templates are enumerated, so that exactly a fifth is held out; of more
a sample is drawn, at most the second number from each."""
MAX_COMPARISONS = 40_000
"""Of answers with a constant one, to find the one that solves most."""
MAX_EXPANDED = 4 * MAX_QUESTION
"""Characters of a question in Unicode's compatibility form, in which one may become eighteen."""
MAX_DIGITS = 160
"""Digits of a number while an expression is worked out."""
MAX_EXPONENT = 40
"""Characters of a tolerance, and its exponent."""
