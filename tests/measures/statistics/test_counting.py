import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.measures.statistics import counting
from remnant.measures.statistics.counting import at_or_under

LOSSES = st.one_of(
    st.integers(-5, 5).map(float),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-1.0, 1.0),
    st.just(np.inf),
)


def by_hand(canaries, references):
    return [sum(reference <= canary for reference in references) for canary in canaries]


@pytest.fixture
def small_grid(monkeypatch):
    """A grid from the second canary on, in pieces of four and with few cells."""
    monkeypatch.setattr(counting, "FEW_CANARIES", 1)
    monkeypatch.setattr(counting, "FEW_REFERENCES", 0)
    monkeypatch.setattr(counting, "PIECE", 4)
    monkeypatch.setattr(counting, "CELLS", 9)


@pytest.mark.usefixtures("small_grid")
def test_the_grid_agrees_with_the_definition():
    @settings(max_examples=400)
    @given(canaries=st.lists(LOSSES, min_size=1), references=st.lists(LOSSES, min_size=1))
    def check(canaries, references):
        found = at_or_under(np.array(canaries), np.array(references))
        assert found.tolist() == by_hand(canaries, references)

    check()


RNG = np.random.default_rng(0)
MANY = {
    "smooth": (RNG.normal(size=300), RNG.normal(size=30_000)),
    "tied": (RNG.integers(0, 9, 300) * 1.0, RNG.integers(0, 9, 30_000) * 1.0),
    "one far off": (np.append(RNG.normal(size=300), 1e12), RNG.normal(size=30_000)),
    "all the same": (np.ones(300), RNG.integers(0, 3, 30_000) * 1.0),
    "infinite": (
        np.append(RNG.normal(size=20), np.inf),
        np.append(RNG.normal(size=20_000), np.inf),
    ),
    "nothing but infinite": (np.full(9, np.inf), np.append(RNG.normal(size=20_000), np.inf)),
    "as wide as floats": (1.7e308 * np.linspace(-1, 1, 50), 1e308 * RNG.uniform(-1, 1, 20_000)),
    "wide": (8e307 * np.linspace(-1, 1, 50), 1.7e308 * RNG.uniform(-1, 1, 20_000)),
    "as narrow as floats": (np.arange(50) * 5e-324, RNG.integers(0, 60, 20_000) * 5e-324),
    "threads of their own": (RNG.normal(size=300), RNG.normal(size=600_000)),
    "a few canaries": (np.array([0.0, 1.0, 0.0]), RNG.normal(size=30_000)),
}


@pytest.mark.parametrize("name", MANY)
def test_many_references_agree_with_a_sort(name):
    canaries, references = MANY[name]
    expected = np.searchsorted(np.sort(references), canaries, side="right")
    np.testing.assert_array_equal(at_or_under(canaries, references), expected)


def test_the_inputs_are_left_alone():
    canaries, references = MANY["smooth"]
    before = canaries.copy(), references.copy()
    at_or_under(canaries, references)
    np.testing.assert_array_equal(canaries, before[0])
    np.testing.assert_array_equal(references, before[1])
