"""Epsilon of private trainings beside the libraries and at the limits; the noise for an epsilon."""

from __future__ import annotations

import math
import sys

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from opacus.accountants import PRVAccountant
from scipy import stats

from remnant.errors import InvalidInput, MissingExtra
from remnant.measures.epsilon import gaussian_delta, gaussian_epsilon
from remnant.plans import ShadowPlan
from remnant.plans.schedule import ArraySchedule
from remnant.privacy import (
    NotAccounted,
    epsilon_spent,
    group_epsilon,
    noise_for,
    privacy_spent,
    spent_by,
)

USUAL = {"sampling_rate": 0.01, "noise": 1.0, "steps": 1000, "delta": 1e-5}


@pytest.mark.parametrize(
    "training",
    [
        USUAL,
        {"sampling_rate": 0.2, "noise": 3.0, "steps": 300, "delta": 1e-6},
        {"sampling_rate": 1.0, "noise": 10.0, "steps": 1000, "delta": 1e-5},
        {"sampling_rate": 0.05, "noise": 0.8, "steps": 1, "delta": 1e-5},
    ],
)
def test_epsilon_equals_the_librarys(training):
    step = dp_accounting.GaussianDpEvent(training["noise"])
    if training["sampling_rate"] < 1:
        step = dp_accounting.PoissonSampledDpEvent(training["sampling_rate"], step)
    accountant = PLDAccountant().compose(step, training["steps"])
    spent = privacy_spent(**training)
    assert spent.accountant == "pld"
    assert spent.epsilon == accountant.get_epsilon(training["delta"])


def test_opacus_agrees():
    accountant = PRVAccountant()
    for _ in range(1000):
        accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    assert epsilon_spent(**USUAL) == pytest.approx(1.828, abs=1e-3)
    assert accountant.get_epsilon(1e-5) == pytest.approx(1.838, abs=1e-3)  # its error is 0.01


def test_one_full_batch_is_a_gaussian_mechanism():
    spent = epsilon_spent(sampling_rate=1.0, noise=2.0, steps=1, delta=1e-6)
    assert spent == pytest.approx(gaussian_epsilon(mu=0.5, delta=1e-6), rel=1e-5)
    many = epsilon_spent(sampling_rate=1, noise=20.0, steps=100, delta=1e-6)
    assert many == pytest.approx(spent, rel=1e-5)


@pytest.mark.parametrize(
    ("changed", "epsilon"),
    [
        ({"noise": 0.0}, math.inf),
        ({"delta": 0.0}, math.inf),
        ({"steps": 0}, 0.0),
        ({"sampling_rate": 0.0}, 0.0),
        ({"steps": 0, "noise": 0.0, "delta": 0.0}, 0.0),
        ({"noise": 1e6}, 0.0),
        ({"noise": 1e300}, 0.0),
        ({"noise": 1e-300}, math.inf),
        ({"sampling_rate": 1e-9, "steps": 1}, 0.0),
    ],
)
def test_limits(changed, epsilon):
    assert epsilon_spent(**{**USUAL, **changed}) == epsilon


def test_tiny_deltas_leave_the_tables_and_stay_upper_bounds():
    spent = [privacy_spent(**{**USUAL, "delta": d}) for d in (1e-9, 1e-14, 1e-18, 1e-300)]
    assert [answer.accountant for answer in spent] == ["pld", "rdp", "rdp", "rdp"]
    assert np.all(np.diff([answer.epsilon for answer in spent]) > 0)
    assert all(math.isfinite(answer.epsilon) for answer in spent)


@pytest.mark.parametrize(
    ("noise", "steps", "accountant"),
    [
        (0.1, 100, "pld"),
        (0.01, 100, "pld"),
        (1e-3, 100, "known batches"),
        (1e-4, 1000, "known batches"),
    ],
)
def test_absurd_epsilons_are_bounded_from_both_sides(noise, steps, accountant):
    rate, delta = 0.01, 1e-9
    spent = privacy_spent(sampling_rate=rate, noise=noise, steps=steps, delta=delta)
    assert spent.accountant == accountant
    # Given k draws of the example, its loss is near k / (2 noise²); k passes this with 2 delta.
    draws = stats.binom.isf(2 * delta, steps, rate)
    per_step = 0.5 / noise**2 + math.log(rate)
    assert draws * (per_step - 1.0 / noise) <= spent.epsilon
    assert spent.epsilon <= 1.4 * (draws + 1) * (0.5 / noise**2 + 6 / noise)


def test_the_bound_for_known_batches_meets_the_tables_where_both_are_computed():
    from remnant.privacy.accounting import _by_tables, _known_batches

    tables = _by_tables(0.01, 1e-3, 100, 1e-9, grid=10.0)
    assert _known_batches(0.01, 1e-3, 100, 1e-9) == pytest.approx(tables, rel=1e-4)
    for noise in (0.1, 0.5, 2.0):  # an upper bound everywhere
        assert _known_batches(0.1, noise, 50, 1e-5) >= _by_tables(0.1, noise, 50, 1e-5, grid=1e-3)


def test_the_bound_for_known_batches_is_a_mean_of_gaussian_deltas():
    from remnant.privacy.accounting import _known_batches

    epsilon = _known_batches(0.1, 0.7, 30, 1e-5)
    draws = np.arange(1, 31)
    deltas = [float(gaussian_delta(mu=math.sqrt(k) / 0.7, epsilon=epsilon)) for k in draws]
    assert stats.binom.pmf(draws, 30, 0.1) @ deltas <= 1e-5  # the second term is left out
    assert stats.binom.pmf(draws, 30, 0.1) @ deltas >= 1e-6


def test_epsilon_moves_the_right_way():
    def spent(**changed):
        return epsilon_spent(**{**USUAL, **changed})

    assert spent(noise=0.9) > spent() > spent(noise=1.1)
    assert spent(steps=1100) > spent() > spent(steps=900)
    assert spent(sampling_rate=0.011) > spent() > spent(sampling_rate=0.009)
    assert spent(delta=1e-6) > spent() > spent(delta=1e-4)


@pytest.mark.parametrize("epsilon", [0.01, 0.65, 1e4, 1e9, 1e12])
def test_noise_for_spends_what_was_wished(epsilon):
    training = {"sampling_rate": 0.01, "steps": 500, "delta": 1e-9}
    noise = noise_for(epsilon=epsilon, **training)
    spent = epsilon_spent(noise=noise, **training)
    assert (1 - 1e-3) * epsilon <= spent <= epsilon


def test_noise_for_without_a_need_for_noise():
    assert noise_for(epsilon=math.inf, sampling_rate=0.1, steps=10, delta=1e-5) == 0.0
    assert noise_for(epsilon=1.0, sampling_rate=0.0, steps=10, delta=1e-5) == 0.0
    assert noise_for(epsilon=1.0, sampling_rate=0.1, steps=0, delta=1e-5) == 0.0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"epsilon": 0.0}, "no finite noise reaches epsilon=0"),
        ({"delta": 0.0}, "at delta=0"),
        ({"epsilon": math.nan}, "epsilon=nan is not a number of 0 or more"),
        ({"epsilon": -1.0}, "epsilon=-1.0"),
        ({"epsilon": 1e-9, "delta": 1e-14, "sampling_rate": 1.0}, "above 1e"),
        ({"sampling_rate": 2, "steps": -1}, r"sampling_rate=2 is not.*; steps=-1"),
    ],
)
def test_noise_for_refuses(changed, message):
    wished = {"epsilon": 1.0, "sampling_rate": 0.01, "steps": 100, "delta": 1e-5}
    with pytest.raises(InvalidInput, match=message):
        noise_for(**{**wished, **changed})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"noise": -1.0}, "noise=-1.0 is not a finite number"),
        ({"noise": math.inf}, "noise=inf"),
        ({"noise": "1"}, "noise='1'"),
        ({"delta": 1.0}, "delta=1.0 is not a number from 0 up to"),
        ({"delta": math.nan}, "delta=nan"),
        ({"steps": 1.5}, "steps=1.5"),
        ({"steps": True}, "steps=True"),
        ({"sampling_rate": -0.1}, "sampling_rate=-0.1"),
    ],
)
def test_bad_input_is_one_sentence(changed, message):
    with pytest.raises(InvalidInput, match=message):
        epsilon_spent(**{**USUAL, **changed})


def test_without_the_library_one_sentence_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(MissingExtra, match=r"needs dp-accounting.*\[dp\]"):
        epsilon_spent(**USUAL)
    assert epsilon_spent(**{**USUAL, "noise": 0.0}) == math.inf


def test_a_group_that_is_always_drawn_is_one_larger_example():
    group = group_epsilon(copies=3, sampling_rate=1.0, noise=30.0, steps=4, delta=1e-5)
    assert group == epsilon_spent(sampling_rate=1.0, noise=10.0, steps=4, delta=1e-5)


def test_a_group_is_a_mixture_of_draws():
    """One step, by integrating the two densities of the mixture."""
    copies, rate, noise, delta = 4, 0.2, 3.0, 1e-3
    group = group_epsilon(copies=copies, sampling_rate=rate, noise=noise, steps=1, delta=delta)
    x = np.linspace(-40, 45, 400_001)
    drawn = np.arange(copies + 1)
    mixed = stats.norm.pdf(x[:, None], drawn, noise) @ stats.binom.pmf(drawn, copies, rate)
    alone = stats.norm.pdf(x, 0.0, noise)
    excesses = [
        np.trapezoid(np.maximum(p - math.exp(group) * q, 0.0), x)
        for p, q in ((mixed, alone), (alone, mixed))
    ]
    assert max(excesses) == pytest.approx(delta, rel=5e-3)


def test_a_group_of_one_is_an_example_and_more_copies_spend_more():
    training = {"sampling_rate": 0.05, "noise": 10.0, "steps": 200, "delta": 1e-5}
    spent = [group_epsilon(copies=copies, **training) for copies in (1, 4, 16)]
    assert spent[0] == epsilon_spent(**training)
    assert spent[1] > 4 * spent[0]  # more than proportional
    assert spent[2] > 4 * spent[1]
    assert group_epsilon(**{**training, "copies": 2, "noise": 0.0}) == math.inf
    assert group_epsilon(**{**training, "copies": 2, "steps": 0}) == 0.0
    assert group_epsilon(copies=4, sampling_rate=0.01, noise=1e-4, steps=100, delta=1e-5) > 1e8
    with pytest.raises(InvalidInput, match="copies=0 is not a whole number of at least 1"):
        group_epsilon(copies=0, **training)


def test_a_million_steps_and_more_are_bounded_without_tables():
    many = {"sampling_rate": 1e-3, "noise": 1.0, "delta": 1e-6}
    fewer, more = (privacy_spent(steps=steps, **many) for steps in (10**6, 10**6 + 1))
    assert (fewer.accountant, more.accountant) == ("pld", "rdp")
    assert fewer.epsilon < more.epsilon < 1.3 * fewer.epsilon
    assert privacy_spent(steps=10**9, **many).epsilon < math.inf


def test_a_zero_that_the_renyi_accountant_rounded_to_is_not_taken():
    """At this rate its divergences are negative by rounding, and it answers 0."""
    tiny = {"sampling_rate": 1e-12, "noise": 1.0, "delta": 1e-9}
    spent = privacy_spent(steps=10**12, **tiny)  # mu is 1.3e-6: at delta 1e-9 epsilon is above 0
    assert spent.epsilon >= gaussian_epsilon(mu=1e-6, delta=1e-9) > 0


def test_the_librarys_log_is_quiet(caplog):
    epsilon_spent(sampling_rate=0.474, noise=0.3125, steps=10, delta=1e-5)
    assert caplog.records == []


def test_a_poisson_schedule_spends_what_its_rate_and_steps_do():
    plan = ShadowPlan(models=2, steps=50, batch=20, sampling="poisson")
    schedule = plan.schedule(examples=400)
    spent = spent_by(schedule, examples=200, noise=1.5, delta=1e-5)
    assert spent == privacy_spent(sampling_rate=0.1, noise=1.5, steps=50, delta=1e-5)
    half = spent_by(schedule, examples=200, noise=1.5, delta=1e-5, steps=25)
    assert half == privacy_spent(sampling_rate=0.1, noise=1.5, steps=25, delta=1e-5)
    for changed, message in (
        ({"examples": 10}, "examples=10 is less than the 20"),
        ({"steps": 51}, "steps=51 is more than the 50"),
        ({"noise": -1.0}, "noise=-1.0"),
    ):
        with pytest.raises(InvalidInput, match=message):
            spent_by(schedule, **{"examples": 200, "noise": 1.5, "delta": 1e-5, **changed})


def test_batches_that_are_not_poisson_are_not_accounted():
    shuffled = ShadowPlan(models=2, steps=50, batch=20).schedule(examples=400)
    drawn = ArraySchedule(np.zeros((3, 1, 4), dtype=np.int64))
    for schedule in (shuffled, drawn):
        spent = spent_by(schedule, examples=200, noise=1.5, delta=1e-5)
        assert isinstance(spent, NotAccounted)
        assert "not Poisson" in spent.reason
