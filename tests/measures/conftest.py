"""A population with a known answer: normal scores, shifted by d and by each model's own effect."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

FPR = 0.1


@dataclass(frozen=True)
class KnownLeak:
    """Seen scores are N(d + effect Z, 1) with Z drawn once a model, unseen ones N(0, 1)."""

    d: float
    effect: float = 0.0

    def scores(self, rng, trials, n_seen, n_unseen):
        shift = self.d + self.effect * rng.normal(size=(trials, 1))
        return shift + rng.normal(size=(trials, n_seen)), rng.normal(size=(trials, n_unseen))

    def truth(self, success):
        """The population's rate, averaged over models."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(60)
        shift = self.d + self.effect * nodes
        tpr = stats.norm.cdf(shift - stats.norm.isf(FPR))
        rates = {
            "accuracy": stats.norm.cdf(shift / 2),
            "auc": stats.norm.cdf(shift / np.sqrt(2)),
            "tpr": tpr,
            "precision": tpr / (tpr + FPR),
        }
        return float(rates[success] @ weights / weights.sum())


def covers_often_enough(inside, nominal=0.95):
    """Fails one time in ten thousand at the nominal coverage; nearly always under 0.88."""
    return np.sum(inside) >= stats.binom.ppf(1e-4, len(inside), nominal)


@pytest.fixture
def known_leak():
    return KnownLeak


@pytest.fixture
def covers():
    return covers_often_enough
