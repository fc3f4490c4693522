"""The page of a study of unique features: how many models react to a patch in one image."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from remnant.errors import InvalidInput, RecordError
from remnant.records.typed import Absent
from remnant.report.blocks import (
    Bar,
    Beside,
    Block,
    Cell,
    Column,
    Figure,
    Fold,
    Missing,
    Picture,
    Pictures,
    Reading,
    Section,
    Table,
    Terms,
    Tile,
    Tiles,
    prose,
    section,
)
from remnant.report.numerals import (
    count_text,
    counted,
    epoch_text,
    percent,
    pvalue_text,
    short_percent,
)
from remnant.report.pictures import png
from remnant.studies.beside.features import beside
from remnant.studies.features.charts import (
    activations_chart,
    canary_chart,
    changes_chart,
    influence_chart,
    through_chart,
)
from remnant.studies.features.result import (
    Activations,
    Canary,
    Features,
    FeaturesResult,
    Influence,
    InfluenceChange,
    Models,
    PictureKind,
    PictureRow,
    Through,
    VariantResult,
)
from remnant.studies.features.sentences import (
    activations_sentence,
    capital,
    changes_sentence,
    done_sentence,
    epochs_ends,
    estimate_cell,
    half_sentence,
    influence_ratio,
    influence_sentence,
    interval_text,
    number_text,
    points_ends,
    points_number,
    points_text,
    positive_sentence,
    reactions_sentence,
    score_sentence,
    spread_sentence,
    t_test_sentence,
    through_sentence,
    variants_sentence,
    white_box_sentence,
)
from remnant.studies.shared.estimates import Estimate, rate_cell, rate_ends
from remnant.studies.shared.pages import RunFacts, closing, headline, scope_section, task_sentence
from remnant.studies.shared.result_parts import Gate

TITLE = "Unique features"
_TITLES = {
    "PASS": "Models do not react to the patch more often than allowed",
    "FAIL": "Models react to a patch that was on one training image",
}
_ADVICE = {
    "PASS": "Nothing to do about this patch. Another patch, model or data set needs its own run.",
    "FAIL": "Remove names and other marks from the training images, or remove the images, and "
    "train again.",
    "INCONCLUSIVE": "Change the recipe as the verdict says, and run it again in a new folder.",
}

MOST_PICTURES = 6
_ALT: dict[PictureKind, str] = {
    "clean": "Training image {} as it was",
    "patched": "Training image {} with the patch",
    "random": "Training image {} with a random patch",
    "image": "Image {} as it was",
    "image patched": "Image {} with the patch",
    "image random": "Image {} with a random patch",
}


def page(result: FeaturesResult, run: RunFacts) -> Iterator[Block]:
    """Yield the page of a result."""
    features = result.features
    if isinstance(features, Absent):
        yield headline(result.verdict, _TITLES, checks=beside(result), advice=_ADVICE)
        yield _in_plain_words(result, run)
        missing = Missing("Reactions to the patch", features.reason, depth="summary")
        yield section("How many models react to the patch", [missing])
    else:
        limit = result.verdict.limit if isinstance(result.verdict, Gate) else None
        reading = _reading(features, limit)
        yield headline(
            result.verdict, _TITLES, checks=beside(result), reading=reading, advice=_ADVICE
        )
        yield _tiles(features.plain, limit)
        yield _in_plain_words(result, run)
        yield from _sections(features)
        yield section("How it was measured", _how_it_was_measured(features), part="method")
    yield scope_section(result.scope)
    yield section("How to read this", [_terms(features)])
    yield from closing(run, ledger=False)


def _reading(features: Features, limit: float | None) -> Reading:
    plain, (value, low, high) = features.plain, features.plain.beyond
    return Reading(
        name="Models that react, planted less never planted",
        value=value,
        low=low,
        high=high,
        limit=limit,
        lowest=min(0.0, low),
        highest=1.0,
        show=points_text,
        n=f"{counted(plain.planted.n, 'planted model')}, {count_text(plain.unplanted.n)} without "
        "the patch",
    )


def _tiles(plain: VariantResult, limit: float | None) -> Tiles:
    allowed = "" if limit is None else f"; allowed {short_percent(limit)}"
    beyond, beyond_m = plain.beyond, plain.beyond_m
    points, nats = f"points; {points_ends(beyond)}{allowed}", f"nats; {interval_text(beyond_m)}"
    return Tiles(
        (
            _models_tile("Planted models that react", plain.planted),
            _models_tile("Models without the patch that react", plain.unplanted),
            Tile("Difference", points_number(beyond.value), points),
            Tile("Mean M less the twins’", number_text(beyond_m.value), nats),
        )
    )


def _models_tile(name: str, models: Models) -> Tile:
    share = models.share_significant
    return Tile(name, percent(share.value), f"of {counted(models.n, 'model')}; {rate_ends(share)}")


# -- in plain words -------------------------------------------------------------------------------


def _in_plain_words(result: FeaturesResult, run: RunFacts) -> Section:
    features = result.features
    blocks: list[Block | None]
    if isinstance(features, Absent):
        sentence = f"Whether models memorise a patch was not measured: {features.reason}."
        blocks = [prose(sentence, tone="lead")]
    else:
        blocks = [
            prose(done_sentence(features), tone="lead", depth="summary"),
            _pictures(features, run),
            prose(score_sentence(features), tone="lead"),
            prose(reactions_sentence(features, features.plain), tone="lead", depth="summary"),
        ]
    return section("In plain words", [*blocks, prose(task_sentence(result.task), tone="lead")])


def _pictures(features: Features, run: RunFacts) -> Block | None:
    blocks = picture_blocks(features.pictures, run, part="features")
    columns = (
        ("Training images", [strip for what, strip in blocks if not what.startswith("image")]),
        ("Images for testing", [strip for what, strip in blocks if what.startswith("image")]),
    )
    sections = tuple(Section(title, tuple(strips)) for title, strips in columns if strips)
    return Beside(sections) if sections else None


def picture_blocks(
    rows: Sequence[PictureRow], run: RunFacts, *, part: str
) -> list[tuple[PictureKind, Pictures]]:
    """Make a strip of at most six pictures of every kind that the record holds.

    Args:
        rows: Where the record holds them.
        run: Reads the arrays.
        part: Name of the result that lists them, for errors.

    Raises:
        RecordError: The record lacks an array, or an array holds no pictures.
    """
    blocks = []
    for place, row in enumerate(rows):
        images = run.array(row.array)
        try:
            files = [png(image) for image in images[:MOST_PICTURES]]
        except (InvalidInput, IndexError, TypeError) as fault:
            raise RecordError(
                f"{run.name} holds a malformed result {part!r}: {part}.pictures[{place}].array "
                f"cannot be shown: {str(fault).removesuffix('.')}."
            ) from fault
        height, width = images.shape[-2:]
        pictures = tuple(
            Picture(file, _ALT[row.what].format(number), width, height)
            for number, file in enumerate(files, start=1)
        )
        if pictures:
            blocks.append((row.what, Pictures(capital(row.title), pictures)))
    return blocks


# -- how many models react ------------------------------------------------------------------------


def _sections(features: Features) -> Iterator[Block]:
    figure = _canary_figure(features.plain, features.significance, "")
    yield section("How many models react to the patch", [figure, *_reactions(features)])
    for title, blocks in _one_way(features, features.plain, ""):
        yield section(title, blocks)
    if len(features.variants) > 1:
        others = [
            _other_way(features, variant, f"v{i}-")
            for i, variant in enumerate(features.variants[1:], start=1)
        ]
        yield section("The other ways to train", others)


def _one_way(
    features: Features, variant: VariantResult, key: str
) -> Iterator[tuple[str, list[Block]]]:
    """Yield the titles and blocks about one way to train, what was not measured left out."""
    yield "Canary by canary", list(_canaries(variant, key))
    if variant.through is not None:
        yield "During training", list(_through(variant.through, features.confidence, key))
    if influence := list(_influence(variant, key)):
        yield "Does self-influence predict which canary is memorised?", influence
    if variant.activations is not None:
        yield "Is there a unit for the patch?", list(_units(variant.activations, key))


def _other_way(features: Features, variant: VariantResult, key: str) -> Fold:
    changes = f": {variant.changes}" if variant.changes else ""
    blocks: list[Block] = [
        prose(reactions_sentence(features, variant), depth="summary"),
        *_halves_prose(variant),
        _canary_figure(variant, features.significance, key),
        *(block for _, blocks in _one_way(features, variant, key) for block in blocks),
    ]
    return Fold(f"{variant.name}{changes}", tuple(blocks))


_SIGNIFICANT = "models.share_significant"


class ModelsRow(NamedTuple):
    """Models of one way to train, with the patch or without it."""

    variant: VariantResult
    patch: str
    models: Models


def _reactions(features: Features) -> Iterator[Block]:
    if compared := variants_sentence(features):
        yield prose(compared)
    yield _reactions_table(features)
    yield _differences_table(features)
    if any(variant.by_influence is not None for variant in features.variants):
        yield section("By the canary’s self-influence", _halves(features))
    yield section("By the paper’s own measures", _paper(features))


def _reactions_table(features: Features) -> Table:
    rows = [
        ModelsRow(variant, patch, models)
        for variant in features.variants
        for patch, models in (("planted", variant.planted), ("never", variant.unplanted))
    ]
    return Table(
        caption=f"Models that react (p ≤ {short_percent(features.significance)}), with "
        f"{short_percent(features.confidence)} intervals",
        key="reactions",
        rows=rows,
        columns=(
            Column("Training", "variant.name"),
            Column("Patch", "patch"),
            Column("Models", "models.n", count_text),
            Column("React", _SIGNIFICANT, rate_cell, strong=True),
        ),
        bar=Bar(
            f"{_SIGNIFICANT}.value",
            percent,
            low=f"{_SIGNIFICANT}.low",
            high=f"{_SIGNIFICANT}.high",
            mark=("chance", features.significance),
        ),
        depth="show",
    )


def _differences_table(features: Features) -> Table:
    return Table(
        caption=f"Planted models less models without the patch, with "
        f"{short_percent(features.confidence)} intervals; M in nats",
        key="differences",
        rows=features.variants,
        columns=(
            Column("Training", "name"),
            Column("Model, or what differs", lambda variant: variant.changes or variant.what),
            Column("Difference", "beyond", _points, strong=True),
            Column("Mean M less the twins’", "beyond_m", estimate_cell, strong=True),
            Column("Test accuracy", "test_accuracy", rate_cell, strong=True),
            Column("Epochs", "stopped_epoch", _epochs, strong=True),
        ),
        note="Twins have the same start and the same order of batches as a planted model. Test "
        "accuracy: of models without the patch. Epochs: the median, the first and the last model "
        "to stop.",
    )


def _halves(features: Features) -> Iterator[Block]:
    yield from _halves_prose(features.plain)

    def of(side: str, name: str) -> Callable[[VariantResult], Estimate | None]:
        return lambda variant: getattr(getattr(variant.by_influence, side), name, None)

    yield Table(
        caption="Planted models, by what their canary was chosen for, with "
        f"{short_percent(features.confidence)} intervals; M in nats",
        key="halves",
        rows=[variant for variant in features.variants if variant.by_influence is not None],
        columns=(
            Column("Training", "name"),
            *(
                Column(title, of(side, name), show, strong=True, group=group)
                for side, group in (("high", "High self-influence"), ("low", "Low self-influence"))
                for title, name, show in (
                    ("React", "share_significant", rate_cell),
                    ("Mean M less the twins’", "beyond_m", estimate_cell),
                )
            ),
        ),
    )


def _halves_prose(variant: VariantResult) -> Iterator[Block]:
    if variant.by_influence is not None:
        for name, half in variant.by_influence.named:
            yield prose(half_sentence(name, half), depth="summary")


def _paper(features: Features) -> Iterator[Block]:
    for sentence in (positive_sentence(features.plain), t_test_sentence(features)):
        if sentence:
            yield prose(sentence)
    groups = (
        ("Share with M > 0", "share_positive", rate_cell),
        ("Mean M over M > 0", "mean_positive", number_text),
        (f"t-test < {short_percent(features.significance)}", "share_t_test", rate_cell),
    )
    yield Table(
        caption="The paper’s measures, and the same without the patch; M in nats",
        key="paper",
        rows=features.variants,
        columns=(
            Column("Training", "name"),
            *(
                Column(title, name, show, strong=show is rate_cell, group=group)
                for group, measure, show in groups
                for title, name in (
                    ("Planted", f"planted.{measure}"),
                    ("Never", f"unplanted.{measure}"),
                )
            ),
        ),
    )


# -- one way to train -----------------------------------------------------------------------------


def _canary_figure(variant: VariantResult, significance: float, key: str) -> Figure:
    return Figure(
        canary_chart(variant, significance=significance),
        f"{key}by-canary",
        "One dot a model. Twins have the same start and the same order of batches, and no patch "
        "in the data.",
        height=340,
    )


def _canaries(variant: VariantResult, key: str) -> Iterator[Block]:
    yield prose(spread_sentence(variant.spread))
    yield prose(white_box_sentence(variant.white_box))
    yield Table(
        caption="Every canary, the highest mean M first; M in nats, one a seed",
        key=f"{key}canaries",
        rows=variant.canaries_by_mean,
        columns=(
            Column("Example", "example"),
            Column("Label", "label"),
            Column("Chosen for", _chosen_for, optional=True),
            Column("Self-influence", "influence", number_text, optional=True),
            Column("Mean M", "mean", number_text, strong=True),
            Column("M", "m", _each(number_text)),
            Column("p", "p", _each(pvalue_text)),
            Column("Twins’ M", "twin_m", _each(number_text)),
        ),
        fold=f"Every canary ({len(variant.by_canary)})",
    )


def _through(through: Through, confidence: float, key: str) -> Iterator[Block]:
    yield prose(through_sentence(through))
    yield Figure(
        through_chart(through),
        f"{key}through",
        f"Bands: {short_percent(confidence)} intervals over seeds and canaries, for each moment by "
        "itself.",
        height=320,
    )


def _influence(variant: VariantResult, key: str) -> Iterator[Block]:
    influence = variant.influence
    figures = [(influence_chart(variant), "influence")]
    if influence is not None:
        yield prose(influence_sentence(influence))
        if changed := changes_sentence(influence):
            yield prose(changed)
        figures.append((changes_chart(influence.changes), "changes"))
    drawn = (Figure(chart, key + name, half=True, height=360) for chart, name in figures if chart)
    if beside := tuple(drawn):
        yield Beside(beside)
    if influence is not None:
        yield _changes_table(influence, key)


def _changes_table(influence: Influence, key: str) -> Table:
    return Table(
        caption="Self-influence without the patch and with it",
        key=f"{key}changes",
        rows=influence.changes,
        columns=(
            Column("Example", "example"),
            Column("High or low", _chosen_for),
            Column("Without", "before", number_text),
            Column("With", "after", number_text),
            Column("Times as much", influence_ratio, number_text),
        ),
        fold=f"Self-influence of every canary ({len(influence.changes)})",
    )


def _units(activations: Activations, key: str) -> Iterator[Block]:
    yield prose(activations_sentence(activations))
    yield Figure(
        activations_chart(activations),
        f"{key}activations",
        "A unit counts where it fires on an image with the patch and does not without it.",
        height=320,
    )


# -- cells ----------------------------------------------------------------------------------------


def _points(difference: Estimate) -> Cell:
    return Cell(points_text(difference.value), points_ends(difference))


def _epochs(stopped: Estimate) -> Cell:
    return Cell(epoch_text(stopped.value), epochs_ends(stopped))


def _each(show: Callable[[float], str]) -> Callable[[tuple[float, ...]], str]:
    return lambda values: ", ".join(map(show, values))


def _chosen_for(row: Canary | InfluenceChange) -> str | None:
    return None if row.high is None else "high" if row.high else "low"


# -- how it was measured --------------------------------------------------------------------------


def _how_it_was_measured(features: Features) -> Iterator[Block]:
    patch = features.patch
    last_row, last_column = patch.row + patch.height - 1, patch.column + patch.width - 1
    yield prose(
        f"The patch covers rows {patch.row} to {last_row} and columns {patch.column} to "
        f"{last_column}, counted from 0."
    )
    yield prose(features.convention, tone="note")


def _terms(features: Features | Absent) -> Terms:
    nulls = level = ""
    if not isinstance(features, Absent):
        nulls = f" {count_text(features.nulls)}"
        level = f" in about {short_percent(features.significance)}"
    terms = {
        "M": "How much more the patch changes a model’s answer than a random patch in the same "
        "place: the mean Kullback–Leibler divergence from the answer to the image without a patch, "
        "in nats, of the patch less that of random patches. It needs the patch and any images, but "
        "no labels and no training data. An M above 0 is no evidence by itself: a patch of high "
        "contrast changes any model’s answers more than noise.",
        "A model that reacts, and the p-value": f"M is ranked among{nulls} patches that were never "
        "planted. They have the same pixels in another order, and are tested on the same images. A "
        f"model that does not know the patch reacts by chance{level} of the cases. It may be more "
        "if models react to strokes; the models without the patch show that.",
        "Twins, and models without the patch": "A twin has the same start and the same order of "
        "batches as a planted model, and the same image without the patch. Twins and further "
        "models that never saw the patch show the same numbers where there is nothing to memorise.",
        "The t-test": "The paper’s test asks whether other images would give M the same sign. They "
        "nearly always would, planted or not. It is shown only for comparison.",
        "Self-influence": "How much a training image moved the model towards itself: the squared "
        "norm of its gradient times the learning rate, summed over checkpoints. Where canaries are "
        "chosen by it, half of them have the highest and half the lowest self-influence on a model "
        "that never saw the patch.",
        "The interval": "How much a number would change with other seeds and other canaries. "
        "Models that share a seed or a canary are not independent, and the interval accounts for "
        "that. Other data, patches and kinds of model are not included.",
        "The verdict": "It is about the share of planted models that react, less that of models "
        "without the patch. PASS: the whole interval of the difference is within the limit. FAIL: "
        "all of it is above. INCONCLUSIVE: neither; the sentence says what would decide it.",
    }
    return Terms(tuple(terms.items()))
