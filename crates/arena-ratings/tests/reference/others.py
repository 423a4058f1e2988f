"""Creates or checks `statistics.json`: data sets, and the statistics that other programs compute from them.

The quick tests compare this crate's statistics with the file. A test of the tier `services` runs this program with
`--check`, which fails unless the other programs still give the numbers in the file. To create the file again, in an
environment with the packages of `xtask/python-requirements.txt`:

    python others.py

The programs:

- numpy: the estimate CR2 by its definition with matrices, (I - H)^(-1/2) for the rows of each cluster.
- statsmodels: the error over clusters without corrections (CR0), means of weighted values (`DescrStatsW`), Holm's p
  values (`multipletests`) and the power of a t test (`TTestPower`).
- scipy: intervals and p values of Student's t-distribution, t tests of paired values (`ttest_rel`), Welch's t test
  (`ttest_ind`) and the exact test by sign flips (`permutation_test`).
"""

import json
import math
import random
import sys
from pathlib import Path

import numpy
import scipy.stats
import statsmodels.api
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower
from statsmodels.stats.weightstats import DescrStatsW

FILE = Path(__file__).parent / "statistics.json"


def clustered(name, clusters):
    """Returns the mean of clustered values, its error CR2 and its interval. `clusters` are lists of values."""
    values = numpy.array([value for cluster in clusters for value in cluster])
    numbers = numpy.array([number for number, cluster in enumerate(clusters) for _ in cluster])
    design = numpy.ones((len(values), 1))
    bread = numpy.linalg.inv(design.T @ design)
    residuals = values - values.mean()
    meat = numpy.zeros((1, 1))
    for number in range(len(clusters)):
        rows = design[numbers == number]
        leverage = numpy.eye(len(rows)) - rows @ bread @ rows.T
        sizes, directions = numpy.linalg.eigh(leverage)
        adjusted = directions @ numpy.diag(sizes**-0.5) @ directions.T @ residuals[numbers == number]
        score = rows.T @ adjusted[:, None]
        meat += score @ score.T
    error = math.sqrt((bread @ meat @ bread)[0, 0])
    plain = statsmodels.api.OLS(values, design).fit(
        cov_type="cluster", cov_kwds={"groups": numbers, "use_correction": False}
    )
    assert abs(plain.params[0] - values.mean()) < 1e-12 and plain.bse[0] <= error
    low, high = scipy.stats.t.interval(0.95, len(clusters) - 1, values.mean(), error)
    p_value = 2 * scipy.stats.t.sf(abs(values.mean()) / error, len(clusters) - 1)
    return {
        "name": name,
        "clusters": clusters,
        "mean": values.mean(),
        "error": error,
        "uncorrected_error": plain.bse[0],
        "low": low,
        "high": high,
        "p_value": p_value,
    }


def within(low, high, *parts):
    """Returns the interval of the mean of values between `low` and `high`. Each of `parts` has the values of one of
    several independent means with equal weights, as lists by cluster. A mean has weighted values that give its error,
    and its share of one virtual cluster at either end of the range (Price and Bonett, 2004)."""
    means, share = [], 1 / len(parts)
    for clusters in parts:
        found = clustered("", clusters)
        sizes = numpy.array([len(cluster) for cluster in clusters])
        count = sizes.sum() ** 2 / (sizes**2).sum()
        distance = found["error"] * math.sqrt(count - 1)
        values = [found["mean"] - distance, found["mean"] + distance, low, high]
        means.append(DescrStatsW(values, weights=[count / 2, count / 2, share, share]))
    center = numpy.mean([mean.mean for mean in means])
    variances = numpy.array([mean.std_mean**2 for mean in means]) * share**2
    freedom = variances.sum() ** 2 / sum(variances**2 / [mean.sum_weights - 1 for mean in means])
    ends = scipy.stats.t.interval(0.95, freedom, center, math.sqrt(variances.sum()))
    if len(parts) == 1 and len({len(cluster) for cluster in parts[0]}) == 1:
        # With clusters of one size, it is the interval of the means of the clusters and the ends of the range.
        all_means = [*map(numpy.mean, parts[0]), low, high]
        plain = scipy.stats.t.interval(0.95, len(all_means) - 1, numpy.mean(all_means), scipy.stats.sem(all_means))
        assert numpy.allclose(plain, ends)
    mean = numpy.mean([numpy.mean([value for cluster in clusters for value in cluster]) for clusters in parts])
    return {
        "range": [low, high], "parts": parts,
        "low": min(max(ends[0], low), mean), "high": max(min(ends[1], high), mean),
    }


def paired(name, one, two):
    """Returns the paired t test of two lists of values, and the exact test by sign flips for short lists."""
    test = scipy.stats.ttest_rel(one, two)
    interval = test.confidence_interval(0.95)
    flips = None
    if len(one) <= 12:
        flips = scipy.stats.permutation_test(
            (one, two), lambda a, b, axis: numpy.mean(a - b, axis=axis), permutation_type="samples",
            vectorized=True, n_resamples=math.inf,
        ).pvalue
    return {
        "name": name, "one": one, "two": two, "p_value": test.pvalue, "low": interval.low, "high": interval.high,
        "flips": flips,
    }


def welch(name, one, two):
    """Returns Welch's t test of two lists of independent values."""
    test = scipy.stats.ttest_ind(one, two, equal_var=False)
    interval = test.confidence_interval(0.95)
    return {
        "name": name, "one": one, "two": two, "freedom": test.df, "p_value": test.pvalue, "low": interval.low,
        "high": interval.high,
    }


def data():
    """Returns all data sets with their statistics. The data are the same at each call."""
    generator = random.Random(20)

    def values(count, mean=0.0, deviation=1.0):
        return [round(generator.gauss(mean, deviation), 3) for _ in range(count)]

    sizes = [[4] * 12, [1, 2, 3, 4, 5, 6] * 3, [1] * 15, [1] * 9 + [20], [3, 1] * 25]
    clusters = []
    for size in sizes:
        groups = [[round(value + shift, 3) for value in values(count, 0.2)] for count in size for shift in values(1)]
        clusters.append(clustered(f"sizes {size[:6]}", groups))
    events = random.Random(21)

    def rare(count, rate):
        sizes = [events.randint(1, 5) if count % 2 else 3 for _ in range(count)]
        return [[float(events.random() < rate) for _ in range(size)] for size in sizes]

    bounded = [
        within(*ends, *(rare(count, rate) for count in counts))
        for ends, rate, counts in [
            ((0.0, 1.0), 0.0, [10]), ((0.0, 1.0), 0.05, [20]), ((-1.0, 1.0), 0.1, [15]), ((0.0, 1.0), 0.5, [30]),
            ((0.0, 1.0), 0.9, [10, 15]), ((-1.0, 1.0), 0.02, [12, 20]),
        ]
    ]
    pairs = [(10, 0.0), (11, 0.5), (12, 1.5), (40, 0.3), (200, -0.2)]
    p_values = [[0.01], [0.04, 0.01, 0.03], [0.5, 0.001, 0.2, 0.2, 0.04, 0.013], [0.02] * 5, [0.9, 0.8, 0.0]]
    powers = [(0.2, 10), (0.5, 10), (0.5, 32), (0.5, 34), (0.05, 3000), (1.0, 10), (3.0, 3), (-0.4, 51), (0.9, 2)]
    return {
        "clustered": clusters,
        "within": bounded,
        "paired": [paired(f"{count} pairs", values(count, mean), values(count)) for count, mean in pairs],
        "welch": [welch("unequal", values(12, 0.5), values(30, 0.0, 3.0)), welch("equal", values(15), values(15))],
        "holm": [{"p_values": each, "adjusted": list(multipletests(each, method="holm")[1])} for each in p_values],
        "power": [
            {"effect": effect, "clusters": count, "power": float(TTestPower().power(effect, count, 0.05))}
            for effect, count in powers
        ],
        "clusters_needed": [
            {"effect": effect, "clusters": math.ceil(float(TTestPower().solve_power(effect, alpha=0.05, power=0.8)))}
            for effect in [0.1, 0.25, 0.4, 0.5, 0.75, 0.9]
        ],
    }


def near(one, two):
    """Returns true if two structures have the same keys and nearly equal numbers."""
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(near(one[key], two[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(two) and all(map(near, one, two))
    if isinstance(one, float) or isinstance(two, float):
        return math.isclose(one, two, rel_tol=1e-7, abs_tol=1e-9)
    return one == two


if __name__ == "__main__":
    found = json.loads(json.dumps(data()))
    if sys.argv[1:] == ["--check"]:
        expected = json.loads(FILE.read_text())
        wrong = [name for name in found if not near(found[name], expected.get(name))]
        if wrong:
            sys.exit(f"{FILE} differs from the present results of: {', '.join(wrong)}")
    else:
        FILE.write_text(json.dumps(found, indent=1) + "\n")
