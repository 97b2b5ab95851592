"""What counting letters alone gets: logistic regression on character n-grams, taught the rows that a skill is
taught, and asked the rows kept aside for measuring. Shown beside a skill's figure, so that it says something.

Features are the counts of all 1- to 4-grams of the text, hashed to a fixed number of columns, as log(1 + n),
each row scaled to length 1 (Weinberger et al. 2009, "Feature hashing for large scale multitask learning")."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

HASHED_FEATURES = 4096
MAX_NGRAM = 4
"""Maximum characters of an n-gram."""
_TEXT = 1000
"""Maximum characters of a text that are counted."""
_STEPS, _RATE, _DECAY = 300, 8.0, 1e-4


def features(text: str) -> dict[int, float]:
    """Returns the weight of each column that a text has, in [0, 1]; their squares sum to 1.

    >>> round(sum(weight**2 for weight in features("ham").values()), 6)
    1.0
    """
    padded = f" {text[:_TEXT].casefold()} "
    counts = Counter(
        zlib.crc32(padded[at : at + size].encode("utf-8", "replace")) % HASHED_FEATURES
        for size in range(1, MAX_NGRAM + 1)
        for at in range(len(padded) - size + 1)
    )
    weights = {column: float(np.log1p(count)) for column, count in counts.items()}
    length = sum(weight**2 for weight in weights.values()) ** 0.5
    return {column: weight / length for column, weight in weights.items()}


def predicted(taught: Sequence[tuple[str, str]], asked: Sequence[str]) -> list[str]:
    """Returns the likeliest label of each text in `asked`, learned from `taught` texts with their labels.

    >>> predicted([("win cash now", "spam"), ("see you at home", "ham")] * 4, ["cash now", "at home"])
    ['spam', 'ham']
    """
    return likeliest(_matrix([text for text, _ in taught]), [label for _, label in taught], _matrix(asked))


def likeliest(
    rows_SF: NDArray[np.float32], taught_S: Sequence[str], asked_PF: NDArray[np.float32]
) -> list[str]:
    """Returns the likeliest label of each row in `asked_PF`, by logistic regression on `rows_SF` with the
    labels `taught_S`. Every row has length 1."""
    labels = sorted({*taught_S})
    truth_SL = np.array([[label == one for one in labels] for label in taught_S], np.float32)
    weights_FL = np.zeros((rows_SF.shape[1], len(labels)), np.float32)
    bias_L = np.zeros(len(labels), np.float32)
    for step in range(_STEPS):
        apart_SL = (_shares(rows_SF @ weights_FL + bias_L) - truth_SL) / len(taught_S)
        rate = _RATE * (1 - step / _STEPS)
        weights_FL -= rate * (rows_SF.T @ apart_SL + _DECAY * weights_FL)
        bias_L -= rate * apart_SL.sum(0)
    return [labels[int(place)] for place in (asked_PF @ weights_FL + bias_L).argmax(1)]


def _matrix(texts: Sequence[str]) -> NDArray[np.float32]:
    rows_SF = np.zeros((len(texts), HASHED_FEATURES), np.float32)
    for row, text in enumerate(texts):
        for column, weight in features(text).items():
            rows_SF[row, column] = weight
    return rows_SF


def _shares(logits_SL: NDArray[np.float32]) -> NDArray[np.float32]:
    weights_SL = np.exp(logits_SL - logits_SL.max(1, keepdims=True))
    shares: NDArray[np.float32] = weights_SL / weights_SL.sum(1, keepdims=True)
    return shares
