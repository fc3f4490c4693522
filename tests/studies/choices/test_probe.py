"""What a trial's models are asked about: the draw, the pass, and what sampling does to a mean."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from scipy import stats

from remnant.measures import exposure
from remnant.measures.statistics.trial_mean import trial_mean
from remnant.models import LanguageModel
from remnant.population import Population
from remnant.probes import text_costs
from remnant.studies import Execution, study_from
from remnant.studies.choices.prepared import prepare_runs
from remnant.studies.choices.probe import (
    lay_out_trial,
    look_on,
    measure_run,
    most_followed,
    references_of,
)
from remnant.tasks.language_models import language_model_maker

TABLE = {
    "question": "exposure-training",
    "plan": {"kind": "insert", "repeats": [1, 2], "epochs": 1, "trials": 3, "controls": 4},
    "text": {"characters": 6_000, "window": 24},
    "secret": {"template": "key {digits:3};"},
    "model": {"options": {"units": 8, "layers": 1}},
    "measure": {"references": 300, "windows": 8, "method": "sampled"},
    "follow": {"epochs": [1], "references": 90},
}


def make_run(**changes):
    table = {**TABLE, **{name: {**TABLE[name], **part} for name, part in changes.items()}}
    return prepare_runs(study_from(table).parts(), Execution())["primary"]


@pytest.fixture(scope="module")
def run():
    return make_run(plan={"twin": True})


@pytest.fixture(scope="module")
def population(run):
    def make():
        module = language_model_maker(run.study, run.planted)()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.mul_(6.0)  # costs that differ
        return module

    return Population(make, seeds=range(6))


def model_of(run, population, member):
    module = language_model_maker(run.study, run.planted)()
    module.load_state_dict(population.state_dict(member))
    return LanguageModel(module, run.planted.vocabulary)


def costs_of(run, model, secrets):
    template = run.study.secret.known
    texts = [template.text(one) for one in secrets]
    return text_costs(model, prefix=template.prefix, texts=texts).bits


def bits_by_hand(costs, drawn):
    return [math.log2(len(drawn) + 1) - math.log2(1 + sum(drawn <= one)) for one in costs]


def test_references_are_a_trials_own_and_none_of_its_secrets(run):
    drawn = [[one.secret for one in references_of(run, i, references=300)] for i in range(3)]
    for trial, some in enumerate(drawn):
        own = run.planted.sets[trial]
        assert len(set(some)) == 300
        assert not {one.secret for one in (*own.canaries, *own.controls)} & set(some)
        fewer = references_of(run, trial, references=90)
        assert [one.secret for one in fewer] == some[:90]
    # Draws of their own have about 90 of 1000 in common.
    assert all(len({*drawn[i]} & {*drawn[j]}) < 130 for i, j in ((0, 1), (0, 2), (1, 2)))


def test_a_small_space_is_used_up(run):
    assert len(references_of(run, 0, references=5_000)) == 1000 - 6
    small = make_run(follow={"references": 5_000})
    assert most_followed(small) == math.log2(1000 - 6 + 1)
    assert most_followed(run) == math.log2(91)


def test_one_pass_has_the_costs_of_all(run, population):
    model = model_of(run, population, 2)
    found = lay_out_trial(run, 1, references=300).costs(model)
    planted = run.planted.sets[1]
    drawn = [one.secret for one in references_of(run, 1, references=300)]
    for costs, own in ((found.canaries, planted.canaries), (found.controls, planted.controls)):
        expected = costs_of(run, model, [one.secret for one in own])
        np.testing.assert_allclose(costs.secrets.sum(1), expected, rtol=1e-5)
        np.testing.assert_allclose(costs.references.sum(1), costs_of(run, model, drawn), rtol=1e-5)
        assert costs.nodes == found.canaries.nodes
    # Each prefix of the digits, and the end, which a row a secret leads up to.
    whole = {one.secret for one in (*planted.canaries, *planted.controls)} | set(drawn)
    assert found.canaries.nodes == sum(len({one[:n] for one in whole}) for n in (1, 2, 3))


def test_controls_and_twins_are_ranked_among_the_same_references(run, population):
    measured = measure_run(run, slice(0, 6), population, Execution(), None)
    assert measured["controls"].shape == (3, 4)
    assert measured["twin"].shape == measured["bits"].shape == (3, 2)
    for trial in range(3):
        own = run.planted.sets[trial]
        drawn = [one.secret for one in references_of(run, trial, references=300)]
        for member, name, some in (
            (2 * trial, "bits", own.canaries),
            (2 * trial, "controls", own.controls),
            (2 * trial + 1, "twin", own.canaries),
        ):
            model = model_of(run, population, member)
            secrets = [one.secret for one in some]
            costs = costs_of(run, model, [*secrets, *drawn])
            expected = bits_by_hand(costs[: len(secrets)], costs[len(secrets) :])
            np.testing.assert_allclose(measured[name][trial], expected)
    assert not measured["exact"].any()


def test_a_walk_that_was_ended_tells_floors(run, population):
    """Ranks of a walk that stopped are bounds, and whether one is the first is not known."""
    ended = make_run(plan={"twin": True}, measure={"method": "exact", "max_nodes": 5})
    whole = make_run(plan={"twin": True}, measure={"method": "exact", "max_nodes": 100_000})
    found, exact = (
        measure_run(one, slice(0, 6), population, Execution(), None) for one in (ended, whole)
    )
    assert exact["exact"].all()
    assert not exact["saturated"].any()
    assert found["saturated"].any()
    assert (found["bits"] <= exact["bits"] + 1e-9).all()
    settled = ~found["saturated"]
    np.testing.assert_allclose(found["bits"][settled], exact["bits"][settled])
    known = found["first_known"]
    assert (found["first"][known] == exact["first"][known]).all()


def test_a_look_and_the_measurement_agree_on_what_they_share(run, population):
    alike = dataclasses.replace(
        run,
        study=dataclasses.replace(
            run.study, follow=dataclasses.replace(run.study.follow, references=300)
        ),
    )
    looked = look_on(alike, slice(0, 6), Execution())(population)
    measured = measure_run(run, slice(0, 6), population, Execution(), None)
    np.testing.assert_array_equal(looked[:, :2], measured["bits"])
    np.testing.assert_array_equal(looked[:, 2:], measured["losses"])


def test_models_are_asked_in_the_type_of_their_parameters():
    run = make_run(plan={"precision": "float64"}, measure={"references": 50})
    made = Population(
        language_model_maker(run.study, run.planted), seeds=range(3), precision="float64"
    )
    measured = measure_run(run, slice(0, 3), made, Execution(), None)
    assert made.state_dict(0)["head.weight"].dtype == torch.float64
    own = run.planted.sets[0].canaries
    drawn = [one.secret for one in references_of(run, 0, references=50)]
    module = language_model_maker(run.study, run.planted)().double()
    module.load_state_dict(made.state_dict(0))
    model = LanguageModel(module, run.planted.vocabulary)
    costs = costs_of(run, model, [*(one.secret for one in own), *drawn])
    np.testing.assert_allclose(measured["bits"][0], bits_by_hand(costs[:2], costs[2:]))


# Exact exposures of a trial's canaries, in bits. Costs of secrets are uniform on (0, 1), so that
# the canary of exposure e costs 2 ** -e.
LAWS = {
    "chance": lambda rng, shape: -np.log2(rng.uniform(size=shape)),
    "even from 1 to 6": lambda rng, shape: rng.uniform(1, 6, shape),
    "about 4": lambda rng, shape: np.clip(rng.normal(4, 1, shape), 1, 6),
    "close to 6": lambda rng, shape: np.clip(rng.normal(5.7, 0.3, shape), 1, 6),
}
TRIALS, REFERENCES, SPACE_BITS = 10, 2_000, 30.0


def sampled_studies(law, canaries, *, shared, studies=1_200):
    """Sampled exposures ``(studies, trials, canaries)``, and the law's exact mean."""
    rng = np.random.default_rng(canaries)
    bits = np.empty((studies, TRIALS, canaries))
    for study in bits:
        exact = law(rng, (TRIALS, canaries))
        for trial, own in enumerate(exact):
            if trial == 0 or not shared:
                drawn = np.sort(rng.uniform(size=REFERENCES))
            study[trial] = bits_of(np.searchsorted(drawn, 2.0**-own, side="right"))
    return bits, float(law(rng, 400_000).mean())


def bits_of(under):
    return np.log2(REFERENCES + 1) - np.log2(1 + under)


def held(bits, truth):
    found = [trial_mean(one.mean(axis=1), most=SPACE_BITS) for one in bits]
    return np.mean([one.low <= truth <= one.high for one in found])


def test_the_simulation_samples_as_the_study_does():
    rng = np.random.default_rng(0)
    drawn, own = rng.uniform(size=REFERENCES), rng.uniform(size=7)
    found = exposure(canary_losses=own, reference_losses=drawn)
    np.testing.assert_allclose(found.bits, bits_of((drawn[:, None] <= own).sum(0)))


@pytest.mark.parametrize("canaries", [1, 4, 20])
@pytest.mark.parametrize("law", LAWS)
def test_intervals_over_trials_hold_the_mean_of_exact_exposures(law, canaries):
    bits, truth = sampled_studies(LAWS[law], canaries, shared=False)
    assert held(bits, truth) >= 0.93


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("law", ["chance", "even from 1 to 6", "close to 6"])
def test_sampling_has_the_mean_that_it_should(law, shared):
    bits, truth = sampled_studies(LAWS[law], 4, shared=shared)
    exact = LAWS[law](np.random.default_rng(1), 20_000)
    ranks = np.arange(REFERENCES + 1)
    some = np.quantile(exact, (np.arange(200) + 0.5) / 200)
    expected = np.mean([stats.binom.pmf(ranks, REFERENCES, 2.0**-e) @ bits_of(ranks) for e in some])
    error = bits.mean(axis=(1, 2)).std() / math.sqrt(len(bits))
    assert abs(bits.mean() - expected) < 4 * error + 0.01
    assert abs(expected - truth) < 0.04


def test_references_shared_by_all_trials_would_not_do():
    # Models that rank secrets alike: one draw moves all trials, and their spread does not show it.
    bits, truth = sampled_studies(LAWS["about 4"], 20, shared=True)
    own, _ = sampled_studies(LAWS["about 4"], 20, shared=False)
    # By Student's t, without the room that intervals leave for other kinds of trial.
    covered = [
        np.mean(
            [one.low <= truth <= one.high for one in (trial_mean(t.mean(axis=1)) for t in some)]
        )
        for some in (bits, own)
    ]
    assert covered[0] < 0.85 < 0.93 <= covered[1]
