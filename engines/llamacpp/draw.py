"""Drawing tokens at temperature 1 in numpy: token and exact log-probability in one pass over the logits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engines.contract import EngineError

BLOCK = 512
"""Probabilities are first summed in blocks of this many; only the block that is hit is summed one by one."""


class Drawer:
    """Keeps the memory of its intermediate results: taken again at each step, it costs as much as the sums."""

    def __init__(self, vocabulary: int) -> None:
        self._starts = np.arange(0, vocabulary, BLOCK)
        self._work = np.empty((0, vocabulary), np.float32)

    def draw(
        self, logits_RV: NDArray[np.float32], uniforms_R: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Tokens at the given quantiles of softmax(logits), and their log-probabilities in nats.

        `uniforms` lie in [0, 1). Raises EngineError when the logits are not finite.

        >>> token, logp = Drawer(2).draw(np.zeros((1, 2), np.float32), np.array([0.6]))
        >>> token.tolist(), logp.round(4).tolist()
        ([1], [-0.6931])
        """
        rows, vocabulary = logits_RV.shape
        if len(self._work) < rows:
            self._work = np.empty((rows, vocabulary), np.float32)
        weights_RV = self._work[:rows]
        top_R = logits_RV.max(1)
        np.subtract(logits_RV, top_R[:, None], out=weights_RV)
        np.exp(weights_RV, out=weights_RV)
        sums_RB = np.add.reduceat(weights_RV, self._starts, axis=1).astype(np.float64)
        ends_RB = sums_RB.cumsum(1)
        total_R = ends_RB[:, -1]
        if not np.isfinite(total_R).all():
            raise EngineError(
                "The model produced numbers that aren't finite: go back to an earlier checkpoint."
            )
        wanted_R = uniforms_R * total_R
        block_R = np.minimum((ends_RB <= wanted_R[:, None]).sum(1), len(self._starts) - 1)
        each_R = np.arange(rows)
        left_R = wanted_R - (ends_RB - sums_RB)[each_R, block_R]
        columns_RC = self._starts[block_R][:, None] + np.arange(min(BLOCK, vocabulary))
        inside_RC = columns_RC < vocabulary
        columns_RC = np.minimum(columns_RC, vocabulary - 1)
        chances_RC = weights_RV[each_R[:, None], columns_RC].astype(np.float64) * inside_RC
        within_RC = chances_RC.cumsum(1)
        # Rounding may leave a quantile behind the block's sum: its last token with a chance then.
        last_R = chances_RC.shape[1] - 1 - (chances_RC[:, ::-1] > 0).argmax(1)
        place_R = np.minimum((within_RC <= left_R[:, None]).sum(1), last_R)
        token_R = columns_RC[each_R, place_R]
        logp_R = logits_RV[each_R, token_R].astype(np.float64) - top_R - np.log(total_R)
        return token_R, logp_R
