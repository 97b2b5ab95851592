"""Defences: which right answers of peers are not trained on, and which peers are chosen less often.

A verified answer may still carry what its author wants learned: a phrase in the work, padding, text after the
answer (arXiv 2511.09780). Every check compares it with this node's own answers, its `Habits`: how improbable
their most improbable spot is, how long they are, which characters they use. Habits follow the policy, so
nothing has to be tuned per model. Pure functions; log-probabilities are in nats under the learner before the
update. `_T` tokens, `_W` windows, `_G` completions of a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args
from unicodedata import category

import msgspec

from app.sapo.asking import CLOSE_TAG, OPEN_TAG, SHORT_MARK
from app.sapo.reading.expression import has_false_equation

WINDOW_WIDTHS = (1, 2, 4, 8)
"""Widths in tokens of the windows in which the most improbable spot of an answer is searched. One token finds a
foreign character; several find a phrase whose single tokens might pass."""
RARE_SHARE = 0.05
"""Share of own answers whose most improbable spot is below the habit, by definition of the habit. Right answers
have fewer such spots. There is no slack: an author can select among its own questions, so anything that passes
one time in ten passes always (LOG.md)."""
LIKELY_NATS = 2.5
"""Total nats of a window up to which it never counts as absurd, however confident the policy has become."""
LONG_SHARE = 0.01
"""Share of own answers that exceed the habitual length, by definition of the habit."""
LENGTH_FACTOR = 1.25
"""Answers up to this multiple of the habitual length are accepted."""
NATS_STEP, LENGTH_STEP = 0.3, 0.2
"""Step size of a habit for one answer: nats, and as a share of the length."""
MIN_CHARACTERS = 20_000
"""Own characters that must have been seen before a kind of character that never occurred among them counts as
foreign."""
MAX_CHARACTERS = 2000
"""Maximum different characters remembered; for a model that uses more, the check is off."""
_FADE = 0.95
"""Factor on a peer's record each time another of its groups is added."""


class Habits(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of own finished answers, following the latest few hundred of them.

    `lowest_W`: for each of WINDOW_WIDTHS, the RARE_SHARE quantile of the answers' least mean log-prob in a
    window. `length`: the number of tokens that all but LONG_SHARE of the answers stay within. `characters`:
    all characters ever used; `seen`: how many were counted."""

    lowest_W: tuple[float, ...]
    length: float
    characters: str = ""
    seen: int = 0


def lowest_window_mean(logprobs_T: Sequence[float], width: int) -> float:
    """Returns the lowest mean log-prob of `width` consecutive tokens; of all tokens if there are fewer.

    >>> [lowest_window_mean([-1.0, -5.0, -2.0, 0.0], width) for width in (1, 2)], lowest_window_mean([-1.0], 4)
    ([-5.0, -3.5], -1.0)
    """
    width = min(width, len(logprobs_T))
    if not width:
        return 0.0
    total = least = sum(logprobs_T[:width])
    for entering, leaving in zip(logprobs_T[width:], logprobs_T, strict=False):
        total += entering - leaving
        least = min(least, total)
    return least / width


def quantile(values: Sequence[float], share: float) -> float:
    """Returns the `share` quantile, linearly interpolated. Raises ValueError if there are no values.

    >>> quantile([0.0, 10.0], 0.25), quantile([3.0], 0.01)
    (2.5, 3.0)
    """
    if not values:
        raise ValueError("a quantile needs values")
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def update_quantile(bound: float, values: Sequence[float], share: float, step: float) -> float:
    """Updates a running quantile: each value below the bound lowers it by `step * (1 - share)`, each other one
    raises it by `step * share`, so it converges to where `share` of the values are below (Robbins and Monro
    1951).

    >>> round(update_quantile(-4.0, [-1.0, -9.0, -1.0], 0.01, 1.0), 2)
    -4.97
    """
    for value in values:
        bound += step * (share - (value < bound))
    return bound


def update_habits(
    habits: Habits | None, logprobs_ST: Sequence[Sequence[float]], texts_S: Sequence[str]
) -> Habits | None:
    """Updates the habits with a round's own finished answers, their log-probs and texts. The first round's
    quantiles are the initial values.

    >>> now = update_habits(None, [[-1.0, -2.0]], ["#3"])
    >>> now.lowest_W, now.length, now.characters
    ((-2.0, -1.5, -1.5, -1.5), 2.0, '#3')
    >>> later = update_habits(now, [[-3.0, -2.0, 0.0]], ["#-"])
    >>> later.lowest_W[0], later.length, later.characters
    (-2.285, 2.396, '#-3')
    """
    answers = [logprobs_T for logprobs_T in logprobs_ST if logprobs_T]
    if not answers:
        return habits
    lowest_WS = [[lowest_window_mean(one, width) for one in answers] for width in WINDOW_WIDTHS]
    lengths = [float(len(one)) for one in answers]
    if habits is None:
        lowest_W = tuple(quantile(values, RARE_SHARE) for values in lowest_WS)
        length = quantile(lengths, 1.0 - LONG_SHARE)
    else:
        moving = zip(habits.lowest_W, lowest_WS, strict=True)
        lowest_W = tuple(update_quantile(bound, values, RARE_SHARE, NATS_STEP) for bound, values in moving)
        length = update_quantile(habits.length, lengths, 1.0 - LONG_SHARE, LENGTH_STEP * habits.length)
    used = set(habits.characters if habits else "").union(*texts_S)
    return Habits(
        lowest_W=lowest_W,
        length=length,
        characters="".join(sorted(used)[: MAX_CHARACTERS + 1]),
        seen=(habits.seen if habits else 0) + sum(map(len, texts_S)),
    )


def has_absurd_spot(habits: Habits, logprobs_T: Sequence[float]) -> bool:
    """Whether some window of tokens is less probable than the least probable windows of own answers.

    A mean over the whole answer would hide a foreign phrase among many probable tokens; a window does not. A
    NaN log-prob counts as absurd.

    >>> habits = Habits(lowest_W=(-6.0, -4.0, -3.0, -2.0), length=20)
    >>> calm = [-0.1] * 8
    >>> [has_absurd_spot(habits, calm + spot) for spot in ([-5.5], [-6.5], [-4.5, -4.5])]
    [False, True, True]
    """
    return any(
        not lowest_window_mean(logprobs_T, width)
        >= min(bound, -LIKELY_NATS / max(1, min(width, len(logprobs_T))))
        for width, bound in zip(WINDOW_WIDTHS, habits.lowest_W, strict=True)
    )


def overlong(habits: Habits, tokens: int) -> bool:
    """Whether an answer is longer than LENGTH_FACTOR times the habitual length.

    >>> habits = Habits(lowest_W=(), length=40.0)
    >>> overlong(habits, 50), overlong(habits, 51)
    (False, True)
    """
    return tokens > LENGTH_FACTOR * habits.length


def well_formed(habits: Habits | None, text: str) -> bool:
    """Whether a text has exactly one answer, nothing after it, no false equation, and no kind of character that
    own answers never have.

    >>> good = ("4-1=3 #3", "4-1 is 3. <answer>3</answer>")
    >>> bad = ("#3 #3", "<answer>3</answer> hail", "<answer>4</answer> <answer>3</answer>", "#3\\nhail")
    >>> bad = (*bad, "4-1=2 #3")
    >>> [well_formed(None, text) for text in good], any(well_formed(None, text) for text in bad)
    ([True, True], False)
    >>> habits = Habits(lowest_W=(), length=9.0, characters="#+-0123456789= ", seen=50_000)
    >>> well_formed(habits, "4-1=3 #3"), well_formed(habits, "HAIL 4-1=3 #3")
    (True, False)
    """
    text = text.strip()
    if OPEN_TAG in text or CLOSE_TAG in text:
        formed = text.count(OPEN_TAG) == text.count(CLOSE_TAG) == 1 and text.endswith(CLOSE_TAG)
    else:
        formed = text.count(SHORT_MARK) == 1 and "\n" not in text[text.find(SHORT_MARK) :]
    formed = formed and not has_false_equation(text)
    if habits is None or habits.seen < MIN_CHARACTERS or len(habits.characters) > MAX_CHARACTERS:
        return formed
    return formed and not set(map(_kind, text)) - set(map(_kind, habits.characters))


def _kind(character: str) -> str:
    """Returns the kind of a character. Letters and digits are grouped (such as lower case), because the
    question decides which of them occur."""
    return category(character) if character.isalnum() else character


Check = Literal["tokens", "form", "length"]
"""Names of the checks. `tokens` rejects answers with absurd spots, `form` badly formed ones, `length` overlong
ones."""

CHECKS: tuple[Check, ...] = get_args(Check)


def trusted_answers(
    checks: Sequence[Check],
    habits: Habits,
    texts_G: Sequence[str],
    lengths_G: Sequence[int],
    logprobs_GT: Sequence[Sequence[float]] | None,
) -> tuple[bool, ...]:
    """Returns whether each answer of a peer's group passes the checks. Raises ValueError if log-probs are
    missing.

    >>> habits = Habits(lowest_W=(-6.0, -4.0, -3.0, -2.0), length=4)
    >>> texts, lengths, logprobs = ["#3", "#3 #3"], [2, 5], [[-0.1, -12.0], [-0.1] * 5]
    >>> [trusted_answers([check], habits, texts, lengths, logprobs) for check in ("tokens", "form")]
    [(False, True), (True, False)]
    >>> [trusted_answers(checks, habits, texts, lengths, None) for checks in (["length"], [])]
    [(True, True), (True, True)]
    """
    passed = [True] * len(texts_G)
    if "form" in checks:
        passed = [well_formed(habits, text) for text in texts_G]
    if "length" in checks:
        passed = [ok and not overlong(habits, tokens) for ok, tokens in zip(passed, lengths_G, strict=True)]
    if "tokens" in checks:
        if logprobs_GT is None:
            raise ValueError("absurd spots are found by log-probabilities, and there are none")
        passed = [ok and not has_absurd_spot(habits, one) for ok, one in zip(passed, logprobs_GT, strict=True)]
    return tuple(passed)


class PeerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How many right answers of a peer's groups were accepted (`taken`) and rejected (`kept_out`); recent
    groups weigh most."""

    taken: float = 0.0
    kept_out: float = 0.0


def update_record(record: PeerRecord, taken: float, kept_out: float) -> PeerRecord:
    """Returns a peer's record after another group with these numbers of accepted and rejected right answers.

    >>> update_record(PeerRecord(taken=2.0, kept_out=4.0), 3, 0)
    PeerRecord(taken=4.9, kept_out=3.8)
    """
    return PeerRecord(taken=_FADE * record.taken + taken, kept_out=_FADE * record.kept_out + kept_out)


def trust(record: PeerRecord, new: float = 0.5) -> float:
    """Returns how often a peer is chosen, relative to one that was never doubted: the probability, by Laplace's
    rule of succession, that its next right answer is accepted. A key without a record has trust `new`, at most
    one half, so that a fresh key is never better than a good name.

    >>> trust(PeerRecord()), trust(PeerRecord(taken=8.0)), round(trust(PeerRecord(kept_out=8.0)), 3)
    (0.5, 0.9, 0.1)
    >>> trust(PeerRecord(), 0.1), trust(PeerRecord(), 0.9), round(trust(PeerRecord(taken=8.0), 0.1), 2)
    (0.1, 0.5, 0.82)
    """
    return (2.0 * min(0.5, new) + record.taken) / (2.0 + record.taken + record.kept_out)
