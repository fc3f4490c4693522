"""``remnant score``: what it says about scores of any framework, and what it refuses."""

from __future__ import annotations

import json
import stat

import numpy as np
import pytest
from scipy import stats

from remnant import audit_scores
from remnant.errors import InvalidInput, NotEnoughEvidence

N = 300


@pytest.fixture(scope="module")
def command(command, with_tables):
    """Commands with their tables."""
    return with_tables(command)


@pytest.fixture
def saved(tmp_path):
    """Write arrays to npy files, and return the options that name them."""

    def save(**arrays: np.ndarray) -> list[object]:
        options: list[object] = []
        for name, array in arrays.items():
            np.save(tmp_path / f"{name}.npy", array)
            options += [f"--{name}", tmp_path / f"{name}.npy"]
        return options

    return save


def noise(seed: int, n: int = N, shift: float = 0.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(shift, size=n)


@pytest.mark.parametrize("success", ["auc", "tpr", "precision", "accuracy"])
def test_raw_scores_alone_never_pass(command, saved, success):
    limit = {"tpr": 0.3, "precision": 0.8}.get(success, 0.65)
    options = saved(seen=noise(0), unseen=noise(1))
    done = command("score", *options, "--limit", limit, "--success", success)
    assert done.code == 3, done.err
    assert done.out.startswith("INCONCLUSIVE")
    assert "under the limit" in done.out
    assert "--control" in done.out
    allowed = ("--allow-inconclusive", "--limit", limit, "--success", success)
    assert command("score", *options, *allowed).code == 0


def test_chance_with_a_control_that_is_found_passes_and_says_what_was_not_checked(command, saved):
    options = saved(seen=noise(0), unseen=noise(1), control=noise(2, 50, 3.0))
    done = command("score", *options, "--limit", 0.6)
    assert done.code == 0, done.out
    assert done.out.startswith("PASS")
    assert "Positive control: the attack finds the 50 records" in done.out
    assert "Nothing checked whether the two sets differ in themselves." in done.out


def test_a_control_that_the_scores_do_not_find_decides_nothing(command, saved):
    options = saved(seen=noise(0), unseen=noise(1), control=noise(2, 50))
    done = command("score", *options, "--limit", 0.6)
    assert (done.code, done.out.split(":")[0]) == (3, "INCONCLUSIVE")
    assert "the positive control failed" in done.out


def test_a_control_of_one_number_decides_nothing(command, saved):
    """As where its scores were not computed and became the largest number."""
    options = saved(seen=noise(0), unseen=noise(1), control=np.full(50, 9.0))
    done = command("score", *options, "--limit", 0.6)
    assert (done.code, done.out.split(":")[0]) == (3, "INCONCLUSIVE")
    assert "with the records given for it, all scores of one side are one number" in done.out


def test_a_control_has_to_be_above_the_limit_in_the_rate_that_is_judged():
    # The control has an AUC of about 0.98, but no record among the 1 % that score highest.
    rng = np.random.default_rng(0)
    seen, unseen = (np.concatenate([rng.normal(size=490), np.full(10, 50.0)]) for _ in range(2))
    settings = {"seen": seen, "unseen": unseen, "success": "tpr", "fpr": 0.01, "limit": 0.05}
    blind = audit_scores(control=rng.normal(5.0, size=100), **settings, rng=rng)
    assert blind.outcome == "INCONCLUSIVE"
    assert "positive control failed" in blind.sentence
    sharp = audit_scores(control=rng.normal(90.0, size=100), **settings, rng=rng)
    assert sharp.outcome == "PASS", sharp.sentence


def test_memorised_records_fail(command, saved):
    done = command("score", *saved(seen=noise(0, shift=1.5), unseen=noise(1)), "--limit", 0.6)
    assert done.code == 1
    assert done.out.startswith("FAIL")
    assert "Nothing checked whether the two sets differ in themselves." in done.out


def test_swapped_scores_are_no_pass(command, saved):
    options = saved(seen=noise(0, shift=-1.0), unseen=noise(1), control=noise(2, 50, 3.0))
    done = command("score", *options, "--limit", 0.6)
    assert done.code == 3
    assert "below chance" in done.out


def test_without_a_limit_it_is_a_finding(command, saved):
    done = command("score", *saved(seen=noise(0), unseen=noise(1)))
    assert done.code == 0
    assert done.out.startswith("FINDING: Training records were not distinguished")
    assert "Nothing checked whether the two sets differ" in done.out


def test_json_holds_the_numbers(command, saved):
    seen, unseen = noise(0, shift=0.5), noise(1)
    done = command("score", *saved(seen=seen, unseen=unseen), "--json")
    result = json.loads(done.out)
    pairs = (seen[:, None] > unseen[None]).mean()
    assert result["attacks"]["rows"][0]["auc"][0] == pytest.approx(pairs, abs=1e-12)
    assert "only their scores" in json.dumps(result["blind"])
    assert result["rows"]["seen"] == N


def test_ties_count_one_half_and_constants_are_chance(command, saved):
    constant = np.ones(N)
    options = saved(seen=constant, unseen=constant, control=np.full(50, 2.0))
    done = command("score", *options, "--limit", 0.6)
    assert done.code == 3, done.out  # whatever the control: nothing may have been computed
    assert "an AUC of 0.500" in done.out
    assert "all scores are one number, seen and unseen" in done.out
    twice = [*options[:2], "--unseen", options[1], *options[4:]]  # one file of constants
    assert command("score", *twice, "--limit", 0.6).code == 3
    mostly = np.where(np.arange(N) % 10 == 0, noise(0), 1.0)
    options = saved(seen=mostly, unseen=mostly[::-1].copy(), control=np.full(50, 9.0))
    done = command("score", *options, "--limit", 0.7)
    assert done.code == 3, done.out
    assert "81 % of the pairs of a seen and an unseen score tie" in done.out
    rng = np.random.default_rng(0)
    seen, unseen = rng.integers(0, 3, N), rng.integers(0, 3, N)
    found = audit_scores(seen=seen, unseen=unseen, rng=rng).auc
    by_hand = (seen[:, None] > unseen).mean() + 0.5 * (seen[:, None] == unseen).mean()
    assert found == pytest.approx(by_hand, abs=1e-12)


def test_out_is_a_record_and_a_report_that_show_reads(command, saved, tmp_path):
    options = saved(seen=noise(0), unseen=noise(1), control=noise(2, 50, 3.0))
    done = command("score", *options, "--limit", 0.6, "--out", tmp_path / "audit", "--json")
    assert done.code == 0, done.err
    assert "report.html" in done.err
    report = tmp_path / "audit" / "report.html"
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    assert "Training records stay under the limit" in report.read_text()
    assert command("show", tmp_path / "audit", "--gate").code == 0
    again = command("score", *options, "--out", tmp_path / "audit")
    assert again.code == 2
    assert "already holds a record" in again.err
    page = command("score", *options, "--out", tmp_path / "x.html")
    assert page.code == 2
    assert not (tmp_path / "x.html").exists()


WRONG = {
    "NaN": (np.full(N, np.nan), f"--seen holds {N} value(s) that are NaN or infinite"),
    "infinite": (np.full(N, np.inf), "NaN or infinite"),
    "two axes": (np.zeros((N, 2)), f"--seen has shape ({N}, 2), not 1 dimension(s)"),
    "a number": (np.float64(3.0), "--seen has shape ()"),
    "too few": (noise(0, 19), "19 seen and 300 unseen records are too few; it takes at least 20"),
    "none": (np.zeros(0), "--seen is empty"),
    "complex": (noise(0) + 1j, "seen.npy holds complex numbers"),
    "texts": (np.array(["a"] * N), "seen.npy holds values of type <U1, not numbers"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_no_score_is_refused_in_a_sentence(command, saved, kind):
    array, words = WRONG[kind]
    done = command("score", *saved(seen=array, unseen=noise(1)))
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert len(done.err.splitlines()) == 1


def test_files_that_are_not_plain_arrays_are_refused(command, saved, tmp_path):
    options = saved(unseen=noise(1))
    pickled = tmp_path / "pickled.npy"
    np.save(pickled, np.array([{}], dtype=object), allow_pickle=True)
    several = tmp_path / "several.npz"
    np.savez(several, a=noise(0), b=noise(1))
    text = tmp_path / "text.npy"
    text.write_text("0.1\n0.2\n")
    for path, words in (
        (pickled, "is not a plain npy file"),
        (several, "holds several arrays"),
        (text, "is not a plain npy file"),
        (tmp_path / "nowhere.npy", "is not there. --seen takes an npy file with scores"),
        (tmp_path, "is not a plain npy file"),
    ):
        done = command("score", "--seen", path, *options)
        assert (done.code, done.out) == (2, "")
        assert words in done.err
        assert len(done.err.splitlines()) == 1


def test_the_same_scores_twice_are_refused(command, saved, tmp_path):
    options = saved(seen=noise(0))
    same = command("score", *options, "--unseen", tmp_path / "seen.npy")
    assert same.code == 2
    assert "--seen and --unseen hold the same scores" in same.err
    copied = command("score", *saved(seen=noise(0), unseen=noise(0)))
    assert copied.code == 2
    assert "--seen and --unseen hold the same scores" in copied.err
    control = command("score", *saved(seen=noise(0), unseen=noise(1), control=noise(0)))
    assert "--seen and --control hold the same scores" in control.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--limit", 0.5), "is not above chance"),
        (("--limit", 1.0), "--limit 1"),
        (("--limit", 0.05, "--success", "tpr"), "is not above chance"),
        (("--confidence", 0.4), "--confidence 0.4 is under 0.8, the least that a gate takes"),
        (("--fpr", 1.5), "--fpr 1.5 is not between 0 and 1"),
        (("--fpr", 0.001, "--success", "tpr"), "cannot place a threshold at FPR 0.001"),
        (("--seed", -1), "--seed -1"),
        (("--success", "f1"), "f1"),
    ],
)
def test_settings_out_of_range_are_refused(command, saved, options, words):
    done = command("score", *saved(seen=noise(0), unseen=noise(1)), *options)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


def test_a_control_of_few_records_is_refused(command, saved):
    done = command("score", *saved(seen=noise(0), unseen=noise(1), control=noise(2, 4, 9.0)))
    assert done.code == 2
    assert "--control has 4 records; it takes at least 20" in done.err


def test_the_library_raises_the_same():
    rng = np.random.default_rng(0)
    with pytest.raises(NotEnoughEvidence, match="too few"):
        audit_scores(seen=[1.0], unseen=noise(1), rng=rng)
    with pytest.raises(InvalidInput, match="rng"):
        audit_scores(seen=noise(0), unseen=noise(1), rng=0)  # type: ignore[arg-type]


TRUTH, LIMIT = 0.605, 0.6
LAWS = {
    # A shift; a scale; two values; a fifth of the records far above all others.
    "normal": lambda rng, n: (
        rng.normal(np.sqrt(2.0) * stats.norm.ppf(TRUTH), size=n),
        rng.normal(size=n),
    ),
    "exponential": lambda rng, n: (
        rng.exponential(TRUTH / (1.0 - TRUTH), size=n),
        rng.exponential(size=n),
    ),
    "two values": lambda rng, n: (
        (rng.random(n) < 0.2 + 2.0 * (TRUTH - 0.5)).astype(float),
        (rng.random(n) < 0.2).astype(float),
    ),
    "a few memorised": lambda rng, n: (
        rng.normal(size=n) + 99.0 * (rng.random(n) < 2.0 * (TRUTH - 0.5)),
        rng.normal(size=n),
    ),
}


@pytest.mark.parametrize("law", LAWS)
def test_a_success_just_above_the_limit_seldom_passes(law):
    rng = np.random.default_rng(5)
    times, passes = 45, 0
    for _ in range(times):
        seen, unseen = LAWS[law](rng, 60)
        control = unseen.max() + 1.0 + rng.random(20)
        audit = audit_scores(seen=seen, unseen=unseen, control=control, limit=LIMIT, rng=rng)
        passes += audit.outcome == "PASS"
    # At a rate of 5 %, so many or more would be seen in one of 1 000 tests.
    assert passes < stats.binom.isf(1e-3, times, 0.05) + 1


def test_groups_of_both_sides(command, saved, tmp_path):
    rng = np.random.default_rng(5)
    sides = [np.repeat(rng.normal(size=200), 5) + rng.normal(size=1000) for _ in range(2)]
    options = saved(seen=sides[0], unseen=sides[1], control=noise(2, 50, 5.0))
    alone = command("score", *options, "--limit", 0.65)
    assert alone.code == 3
    assert "scores of neighbouring records are alike" in alone.out
    labels = saved(**{"seen-groups": np.arange(1000) // 5, "unseen-groups": np.arange(1000) // 5})
    assert command("score", *options, *labels, "--limit", 0.65).code == 0
    one = command("score", *options, *labels[:2], "--limit", 0.65)
    assert one.code == 2
    assert "go together" in one.err
