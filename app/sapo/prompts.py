"""How a question is put to a model, and how its answer is found. The one place for both.

Two forms of answer are understood from anyone: `<answer>...</answer>`, which chat models are asked for, and the
short form `#...` at the end of a line of work, which the starter model writes.
"""

from __future__ import annotations

SYSTEM = (
    "Solve the puzzle. Work it out briefly, then give the final answer alone between <answer> and </answer>."
)

_OPEN, _CLOSE, _SHORT = "<answer>", "</answer>", "#"

MAX_ANSWER = 512
"""Characters of an answer that a scorer ever sees. A longer one is no answer."""


def messages(question: str) -> list[dict[str, str]]:
    """A question as chat messages. The model's own chat template turns them into tokens."""
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]


def extract_answer(completion: str) -> str | None:
    """The answer a completion commits to: the last closed `<answer>` pair, else what follows the last `#`.

    None when there is none, when it is empty or longer than MAX_ANSWER. Only one candidate is ever taken, so
    listing many answers earns nothing.

    >>> extract_answer("4-1=3 3-7=-4 #-4"), extract_answer("<answer>1</answer> no, <answer> 2 </answer>")
    ('-4', '2')
    """
    end = completion.rfind(_CLOSE)
    if end >= 0:
        start = completion.rfind(_OPEN, 0, end)
        if start < 0:
            return None
        answer = completion[start + len(_OPEN) : end]
    else:
        start = completion.rfind(_SHORT)
        if start < 0:
            return None
        answer = completion[start + len(_SHORT) :]
    answer = answer.strip()
    return answer if 0 < len(answer) <= MAX_ANSWER else None


def shows_work(completion: str) -> bool:
    """Whether anything is written before the answer, in either of its forms.

    >>> shows_work("4-1=3 #3"), shows_work("#3"), shows_work("3 is <answer>3</answer>"), shows_work("hm")
    (True, False, True, False)
    """
    end = max(completion.rfind(_SHORT), completion.rfind(_OPEN))
    return end > 0 and bool(completion[:end].strip())
