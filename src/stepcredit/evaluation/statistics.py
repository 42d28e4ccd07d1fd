"""pass@k and bootstrap intervals over seeds and puzzles (SPEC section 8).

All functions take values laid out as (seeds, puzzles): the seeds of an arm on the same held-out puzzles.
Each resample draws seeds with replacement and then puzzles with replacement. The drawn puzzles are the same
for every seed of a resample, because they *are* the same puzzles: drawing them anew for each seed would count
a hard puzzle as several independent ones and give intervals that are too narrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A mean (or another point estimate) and the ends of its confidence interval, in the same unit."""

    mean: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class Bootstrap:
    """How to resample: number of resamples, confidence of the interval, seed of the PCG64 generator."""

    resamples: int = 2000
    confidence: float = 0.95
    seed: int = 0

    def generator(self) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64(self.seed))

    def interval(self, point: float, resampled: Floats) -> Interval:
        """The percentile interval of the resampled statistics (NaN ones, of empty denominators, left out)."""
        tail = (1 - self.confidence) / 2
        if np.isnan(resampled).all():
            return Interval(point, float("nan"), float("nan"))
        low, high = np.nanquantile(resampled, [tail, 1 - tail])
        return Interval(point, float(low), float(high))


def pass_at_k(correct: ArrayLike, samples: int, k: int) -> Floats:
    """Unbiased pass@k of each puzzle: 1 - C(n - c, k) / C(n, k), with c correct of n samples.

    Source: the closed form of Chen et al. 2021; CPAS ("Results: promising start") reports pass@1 and pass@4
    of four samples a puzzle.

    Args:
        correct: number of correct samples of each puzzle, any shape.
        samples: n, the same for all puzzles.
        k: at most n.

    Raises:
        ValueError: k is not in 1..n (the closed form is undefined), or a count is not in 0..n.
    """
    counts = np.asarray(correct, dtype=np.float64)
    if not 1 <= k <= samples:
        raise ValueError(f"pass@{k} of {samples} samples a puzzle is undefined: k must be in 1..{samples}")
    if counts.size and not (counts.min() >= 0 and counts.max() <= samples):
        raise ValueError(f"the number of correct samples must be between 0 and {samples}")
    drawn = np.arange(k, dtype=np.float64)
    miss = np.clip(samples - counts[..., None] - drawn, 0, None) / (samples - drawn)
    result: Floats = 1 - miss.prod(axis=-1)
    return result


def mean_interval(values: ArrayLike, bootstrap: Bootstrap) -> Interval:
    """Mean over seeds and puzzles of `values` (seeds, puzzles)."""
    matrix = _matrix(values)
    return bootstrap.interval(float(matrix.mean()), _resampled_means(matrix[None], bootstrap)[0])


def ratio_interval(numerator: ArrayLike, denominator: ArrayLike, bootstrap: Bootstrap) -> Interval:
    """Ratio of two means, resampled together: e.g. correct over finished. NaN if the denominator is zero."""
    stack = _stack(numerator, denominator)
    top, bottom = _resampled_means(stack, bootstrap)
    with np.errstate(divide="ignore", invalid="ignore"):
        resampled = np.where(bottom != 0, top / bottom, np.nan)
    point = float(stack[0].sum() / stack[1].sum()) if stack[1].sum() else float("nan")
    return bootstrap.interval(point, resampled)


def paired_difference(first: ArrayLike, second: ArrayLike, bootstrap: Bootstrap) -> Interval:
    """`first` minus `second`, both (seeds, puzzles): the same puzzles, seeds paired by index.

    Raises:
        ValueError: the shapes differ.
    """
    stack = _stack(first, second)
    return mean_interval(stack[0] - stack[1], bootstrap)


def paired_ratio_difference(
    first: tuple[ArrayLike, ArrayLike], second: tuple[ArrayLike, ArrayLike], bootstrap: Bootstrap
) -> Interval:
    """Difference of two ratios (numerator, denominator), all four resampled together."""
    stack = _stack(*first, *second)
    means = _resampled_means(stack, bootstrap)
    with np.errstate(divide="ignore", invalid="ignore"):
        resampled = means[0] / means[1] - means[2] / means[3]
        sums = stack.sum(axis=(1, 2))
        point = float(sums[0] / sums[1] - sums[2] / sums[3])
    return bootstrap.interval(point, np.where(np.isfinite(resampled), resampled, np.nan))


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """Spearman's rank correlation of two vectors, ties given their mean rank; NaN where one is constant."""
    # Here, because the Snakefile reads this module's settings and scipy.stats takes a second to import.
    from scipy.stats import rankdata

    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"two vectors of one length are needed, not {x.shape} and {y.shape}")
    ranks = np.stack([rankdata(x), rankdata(y)])
    if (np.ptp(ranks, axis=1) == 0).any():
        return float("nan")
    return float(np.corrcoef(ranks)[0, 1])


def spearman_interval(
    first: ArrayLike, second: ArrayLike, bootstrap: Bootstrap, clusters: ArrayLike | None = None
) -> Interval:
    """Spearman's correlation with an interval that resamples clusters of pairs.

    Args:
        first: vector of n values.
        second: vector of n values.
        bootstrap: how to resample.
        clusters: what each pair belongs to (n labels, e.g. the rollout of a boundary): pairs of one rollout
            are not independent. None: each pair is its own cluster.
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    point = spearman(x, y)
    labels = np.arange(len(x)) if clusters is None else np.unique(np.asarray(clusters), return_inverse=True)[1]
    members = [np.flatnonzero(labels == label) for label in range(int(labels.max(initial=-1)) + 1)]
    generator = bootstrap.generator()
    resampled = np.empty(bootstrap.resamples)
    for index in range(bootstrap.resamples):
        drawn = np.concatenate([members[pick] for pick in generator.integers(len(members), size=len(members))])
        resampled[index] = spearman(x[drawn], y[drawn])
    return bootstrap.interval(point, resampled)


def _resampled_means(stack: Floats, bootstrap: Bootstrap) -> Floats:
    """Means of each of M matrices in each of R resamples: (M, seeds, puzzles) -> (M, R).

    With one seed only the puzzles are resampled.
    """
    _, seeds, puzzles = stack.shape
    over_seeds, over_puzzles = _weights(bootstrap, seeds, puzzles)
    return np.stack([np.einsum("rp,rp->r", over_seeds @ matrix, over_puzzles) for matrix in stack])


@lru_cache(maxsize=4)
def _weights(bootstrap: Bootstrap, seeds: int, puzzles: int) -> tuple[Floats, Floats]:
    """How often each resample drew each seed and each puzzle, as shares: (R, seeds) and (R, puzzles)."""
    generator = bootstrap.generator()
    return _shares(generator, bootstrap.resamples, seeds), _shares(generator, bootstrap.resamples, puzzles)


def _shares(generator: np.random.Generator, resamples: int, items: int) -> Floats:
    draws = generator.integers(items, size=(resamples, items))
    cells = (draws + np.arange(resamples)[:, None] * items).ravel()
    counts = np.bincount(cells, minlength=resamples * items).reshape(resamples, items)
    return counts / items


def _matrix(values: ArrayLike) -> Floats:
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2 or not matrix.size:
        raise ValueError(f"values must be a (seeds, puzzles) matrix that is not empty, not {matrix.shape}")
    return matrix


def _stack(*arrays: ArrayLike) -> Floats:
    matrices = [_matrix(array) for array in arrays]
    shapes = {matrix.shape for matrix in matrices}
    if len(shapes) > 1:
        raise ValueError(f"paired values need the same (seeds, puzzles), not {sorted(shapes)}")
    return np.stack(matrices)
