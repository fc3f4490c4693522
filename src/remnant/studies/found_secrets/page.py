"""The page of ``remnant scan``: what occurs where, and how exposed it is in a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import starmap
from operator import attrgetter
from typing import NamedTuple

from remnant.canaries.natural import CleanedFile, ScannedFile
from remnant.report.blocks import Block, Cell, Column, Prose, Table, Tone, prose, section
from remnant.report.numerals import counted, printable, times_text, whole_text
from remnant.studies.beside.found_secrets import beside, of_scan
from remnant.studies.command_result import record_page
from remnant.studies.found_secrets.parts import (
    MeanByTimes,
    RankCorrelation,
    ShownBits,
    TriedExtraction,
)
from remnant.studies.found_secrets.result import (
    CleanedText,
    ComparedTwin,
    KindCount,
    LocatedSecret,
    MeasuredSecret,
    ModelExposure,
    ScanCommand,
    ScanResult,
)
from remnant.studies.found_secrets.verdict import (
    ADVICE,
    NO_PROOF,
    NOT_SEARCHED,
    TITLES,
)
from remnant.studies.shared.pages import RunFacts, headline

TITLE = "Secrets found in text"
_ROWS = 20
_TEXT = attrgetter("text")


class _KindRow(NamedTuple):
    """A row of the table of kinds."""

    kind: str
    found: KindCount


class _SecretRow(NamedTuple):
    """A row of the table of secrets."""

    number: int
    found: LocatedSecret
    first_place: str


def scan_page(result: ScanResult) -> Iterator[Block]:
    """The verdict of a gate, and then the sections."""
    if result.verdict is not None:
        yield headline(result.verdict, TITLES, checks=of_scan(result), advice=ADVICE)
    yield from sections(result)
    if result.verdict is None and not result.secrets and result.cleaned is None:
        yield _line(NO_PROOF, "notice")  # a cleaned copy says the same


def page(result: ScanCommand, run: RunFacts) -> Iterator[Block]:
    """Yield the page of a record."""
    yield from record_page(
        result,
        run,
        sections,
        heading="What was found",
        what="The scan",
        checks=beside(result),
        titles=TITLES,
        advice=ADVICE,
    )


def sections(result: ScanResult) -> Iterator[Block]:
    """The secrets by kind, by file and one by one, then their exposure and that in a twin."""
    yield _line(_files_sentence(result))
    for file in result.files:
        for sentence in _rows_sentences(file):
            yield _line(sentence, "notice")
    if not result.secrets:
        yield _line(f"Found nothing of {', '.join(result.kinds)}.")
    else:
        yield section("What was found", _found(result))
    if result.cleaned is not None:
        yield section("The cleaned copy", _cleaned(result.cleaned))
    if not result.secrets:
        return
    if result.exposure is not None:
        yield section("Exposure in the model", _exposure(result.exposure, result.twin))
    if result.twin is not None:
        yield section("Compared with the twin", _twin(result.twin))


def _line(text: str, tone: Tone = "plain") -> Prose:
    return prose(text, tone=tone, depth="show")


def _files_sentence(result: ScanResult) -> str:
    characters = sum(file.characters for file in result.files)
    empty = sum(file.characters == 0 for file in result.files)
    rows = sum(file.rows or 0 for file in result.files)
    parts = [counted(len(result.files), "file"), counted(characters, "character")]
    if rows:
        parts.insert(1, counted(rows, "row"))
    if empty:
        parts.append(f"{whole_text(empty)} empty")
    if result.skipped:
        parts.append(f"{whole_text(len(result.skipped))} skipped, not text")
    return f"{', '.join(parts)}."


def _rows_sentences(file: ScannedFile) -> Iterator[str]:
    """What to know about a file of rows."""
    path = printable(file.path)
    if file.read_as_text is not None:
        yield f"Warning: {path} was read as plain text: {file.read_as_text}."
    if file.rows_without_text is not None:
        many = f"{counted(file.rows_without_text, 'row')} of {whole_text(file.rows or 0)}"
        yield f"{path}: {many} without text, the first at line {file.first_without_text}."


def _found(result: ScanResult) -> Iterator[Block]:
    yield Table(
        caption="Secrets by kind",
        key="kinds",
        rows=tuple(starmap(_KindRow, result.kinds.items())),
        columns=(
            Column("Kind", "kind"),
            Column("Secrets", "found.secrets", whole_text),
            Column("Times", "found.times", whole_text),
            Column("Files", "found.files", whole_text),
        ),
        depth="show",
    )
    yield _files_table(result)
    yield _secrets_table(result)
    for file in result.files:
        for kind in file.crowded:
            yield _line(_crowded_sentence(kind, file), "notice")


def _cleaned(cleaned: CleanedText) -> Iterator[Block]:
    changed = tuple(file for file in cleaned.files if file.counts)
    replacements = counted(sum(cleaned.counts.values()), "replacement")
    yield _line(
        f"Cleaned copy in {printable(cleaned.folder)}: {counted(len(cleaned.files), 'file')}, "
        f"{replacements} in {whole_text(len(changed))} of them."
    )
    yield Table(
        caption="Replacements in the cleaned copy",
        key="replacements",
        rows=changed,
        columns=(
            Column("File", "copy", printable),
            *(
                Column(kind, _times_in_file(kind), whole_text)
                for kind, many in cleaned.counts.items()
                if many
            ),
        ),
        names=True,
        limit=_ROWS,
        more=_more(len(changed), "file"),
        depth="show",
    )
    if cleaned.zeros:
        yield _line(f"In JSON files, {counted(cleaned.zeros, 'number')} became 0.")
    if cleaned.not_copied:
        yield Table(
            caption=f"Warning: {counted(len(cleaned.not_copied), 'file or link', 'files or links')}"
            " not copied",
            key="not_copied",
            rows=cleaned.not_copied,
            columns=(Column("Path", "path", printable), Column("Reason", "reason", printable)),
            names=True,
            limit=_ROWS,
            more=_more(len(cleaned.not_copied), "path"),
            depth="show",
        )
    kinds = ", ".join(cleaned.counts)
    yield _line(
        f"The copy may still hold secrets. {counted(len(cleaned.counts), 'kind')} "
        f"{'was' if len(cleaned.counts) == 1 else 'were'} searched for: {kinds}. Not searched for: "
        f"{NOT_SEARCHED}. Detectors miss secrets.",
        "notice",
    )


def _files_table(result: ScanResult) -> Table:
    files = sorted(
        (file for file in result.files if file.counts), key=lambda file: -sum(file.counts.values())
    )
    present = [kind for kind in result.kinds if any(kind in file.counts for file in files)]
    return Table(
        caption="How often secrets occur in each file",
        key="files",
        rows=files,
        columns=(
            Column("File", "path", printable),
            *(Column(kind, _times_in_file(kind), whole_text) for kind in present),
        ),
        names=True,
        limit=_ROWS,
        more=_more(len(files), "file"),
        depth="show",
    )


def _times_in_file(kind: str) -> Callable[[ScannedFile | CleanedFile], int]:
    return lambda file: file.counts.get(kind, 0)


def _more(rows: int, thing: str) -> str:
    return f"{thing if rows == _ROWS + 1 else f'{thing}s'}; --json has all"


def _secrets_table(result: ScanResult) -> Table:
    secrets = tuple(
        _SecretRow(number, secret, _first_place(secret))
        for number, secret in enumerate(result.secrets, start=1)
    )
    checked = any(secret.checked for secret in result.secrets)
    return Table(
        caption="Every secret, the most frequent first",
        key="secrets",
        rows=secrets,
        columns=(
            Column("#", "number"),
            Column("Kind", "found.kind"),
            Column("Service", "found.service", optional=True),
            Column("Length", "found.length", whole_text),
            Column("Bits", "found", _bits_cell),
            Column("Times", "found.times", whole_text),
            Column("Fingerprint", "found.fingerprint"),
            Column("First at", "first_place"),
            Column("Secret", "found.secret", printable, optional=True),
        ),
        names=True,
        note="Bits in brackets: of those that pass the kind's check." if checked else "",
        limit=_ROWS,
        more=_more(len(secrets), "secret"),
        depth="show",
    )


def _bits_cell(secret: LocatedSecret) -> Cell:
    return Cell(f"{secret.space_bits:.1f}", f"{secret.valid_bits:.1f}" if secret.checked else "")


def _first_place(secret: LocatedSecret) -> str:
    place = secret.places[0]
    if place.row is None:
        return f"{printable(place.path)}:{place.line}:{place.column}"
    row = "header" if place.row == 0 else f"row {place.row}"
    field = f", {printable(place.field)}" if place.field else ""
    return f"{printable(place.path)}:{place.line}, {row}{field}:{place.column}"


def _crowded_sentence(kind: str, file: ScannedFile) -> str:
    return (
        f"Warning: {kind} takes up more than half of {printable(file.path)}. It is a list of them, "
        "or of numbers that only look like them. Leave the file out with --exclude, or leave "
        f"{kind} out of --kinds."
    )


def _exposure(exposure: ModelExposure, twin: ComparedTwin | None) -> Iterator[Block]:
    if exposure.secrets and not exposure.measured:
        yield _line(f"Not measured: {_nothing_measured(exposure)}.")
        yield from _less_frequent(exposure)
        return
    if not exposure.secrets:
        yield _line(f"No secret is left to measure in {printable(exposure.model)}.")
    if exposure.arithmetic:
        yield _line(exposure.arithmetic)
    if exposure.calibrated:
        yield _line("Costs and exposure are calibrated by reference models.")
    yield _exposure_table(exposure, twin)
    yield _means_table(exposure)
    for correlation in exposure.rank_correlations:
        if correlation.value is not None:
            yield _line(_correlation_sentence(correlation))
    if exposure.extract:
        yield from _extraction_lines(exposure)
    yield from _unmeasured_lines(exposure)
    yield from _less_frequent(exposure)
    if not exposure.calibrated and twin is None:
        yield _line(
            "These secrets were not drawn at random, as canaries are: names, area codes and "
            "issuers are likely before anything is memorised. Compare with --twin.",
            "note",
        )


def _nothing_measured(exposure: ModelExposure) -> str:
    """Why a model could be tested on none of the secrets."""
    from remnant.studies.found_secrets.measure import OF_VOCABULARY  # loads PyTorch

    model = printable(exposure.model)
    if exposure.reasons.keys() <= OF_VOCABULARY:
        return (
            f"the vocabulary of {model} does not fit this text: its characters or words do not "
            "make up these secrets and the text before them"
        )
    each = [f"{reason} ({counted(many, 'secret')})" for reason, many in exposure.reasons.items()]
    return f"{model} could be tested on none: {'; '.join(each)}"


def _less_frequent(exposure: ModelExposure) -> Iterator[Block]:
    if exposure.not_measured:
        many = counted(exposure.not_measured, "secret")
        yield _line(f"Not measured: {many}, less frequent; see --at-most.")


def _exposure_table(exposure: ModelExposure, twin: ComparedTwin | None) -> Table:
    in_twin = {} if twin is None else {row.fingerprint: row for row in twin.exposure.measured}
    measured = exposure.measured

    def twin_bits(row: MeasuredSecret) -> ShownBits | None:
        return _bits(in_twin.get(row.fingerprint))

    return Table(
        caption=f"Exposure in {printable(exposure.model)} in bits, each among all secrets of its "
        f"form, after the {counted(exposure.context, 'character')} before it",
        key="exposure",
        rows=measured,
        columns=(
            Column("Fingerprint", "fingerprint"),
            Column("Kind", "kind"),
            Column("Times", "times", whole_text),
            Column("Exposure", _bits, _TEXT, strong=True),
            Column("In the twin", twin_bits, _TEXT, optional=True),
            Column("Of", "space_bits", lambda bits: f"{bits:.1f}"),
            Column("Rank, or 95 % interval", _standing),
            *([Column("Extracted", _extracted)] if exposure.extract else []),
        ),
        limit=_ROWS,
        more=_more(len(measured), "secret"),
        depth="show",
    )


def _bits(row: MeasuredSecret | None) -> ShownBits | None:
    return None if row is None or row.shown is None else row.shown.shown_bits


def _standing(row: MeasuredSecret) -> str | None:
    return None if row.shown is None else row.shown.standing


def _extracted(row: MeasuredSecret) -> str:
    tried = row.extraction
    if tried is None:
        return "not tried"
    proof = "" if tried.certified else ", not certified"
    if tried.extracted:
        return f"yes{proof}, {_queries(tried)}"
    return f"no{': another found secret is likelier' if tried.another_found else ''}{proof}"


def _queries(tried: TriedExtraction) -> str:
    if tried.queries_99 is None:
        return tried.reason or ""
    samples = "sample" if tried.queries_99 == 1 else "samples"
    return f"99 % within {whole_text(tried.queries_99)} {samples}"


def _means_table(exposure: ModelExposure) -> Table:
    return Table(
        caption="Mean exposure in bits, by how often a secret occurs in the text",
        key="means",
        rows=exposure.means,
        columns=(
            Column("Kind", "kind"),
            Column("Occurs", _times_range),
            Column("Mean", "mean", _TEXT, strong=True),
            Column("Secrets", "n", whole_text),
        ),
        depth="show",
    )


def _times_range(mean: MeanByTimes) -> str:
    if mean.times_most == mean.times_least:
        return times_text(mean.times_least)
    return f"{whole_text(mean.times_least)} to {whole_text(mean.times_most)} times"


def _correlation_sentence(correlation: RankCorrelation) -> str:
    interval = (
        ""
        if correlation.low is None or correlation.high is None
        else f", 95 % interval {correlation.low:.2f} to {correlation.high:.2f}"
    )
    return (
        f"{correlation.kind}: rank correlation of the two {correlation.value:.2f}{interval} "
        f"({counted(correlation.n or 0, 'secret')})."
    )


def _extraction_lines(exposure: ModelExposure, *, source: str = "") -> Iterator[Block]:
    extracted = [tried for tried in exposure.tried if tried.extracted]
    proven = sum(tried.certified for tried in extracted)
    certificate = f", {whole_text(proven)} with a certificate" if extracted else ""
    yield _line(
        f"Extracted{source}: {whole_text(len(extracted))} of {whole_text(len(exposure.tried))} "
        f"that were tried{certificate}."
    )
    for reason in exposure.untried_reasons:
        yield _line(f"Not tried: {reason}.")


def _unmeasured_lines(exposure: ModelExposure, *, where: str = "") -> Iterator[Block]:
    for reason, many in exposure.reasons.items():
        yield _line(f"Not measured{where}: {counted(many, 'secret')}: {reason}.")


def _twin(twin: ComparedTwin) -> Iterator[Block]:
    if twin.exposure.secrets and not twin.exposure.measured:
        yield _line(f"Not compared with the twin: {_nothing_measured(twin.exposure)}.")
        yield from _in_twin_text(twin)
        return
    compared = (
        f"Compared with the twin {printable(twin.exposure.model)}, tested on the same secrets"
    )
    yield _kinds_table(twin, compared) if twin.kinds else _line(f"{compared}.")
    yield _line(_test_sentence(twin))
    if twin.exposure.tried:
        yield from _extraction_lines(twin.exposure, source=" from the twin")
    yield from _in_twin_text(twin)
    yield from _unmeasured_lines(twin.exposure, where=" in the twin")
    if twin.not_compared:
        many = counted(twin.not_compared, "secret")
        yield _line(f"Not compared: {many}, measured in one model only.")
    if twin.kinds:
        yield _line(
            "A weaker twin gives the same result. Run it again with the models swapped, on the "
            "secrets in the twin's own text.",
            "note",
        )


def _kinds_table(twin: ComparedTwin, caption: str) -> Table:
    return Table(
        caption=caption,
        key="twin",
        rows=twin.kinds,
        columns=(
            Column("Kind", "kind"),
            Column("Secrets", "n", whole_text),
            Column("More exposed", "higher", whole_text),
            Column("Less", "lower", whole_text),
            Column("Undecided", "undecided", whole_text),
            Column("Median bits", "median", _TEXT),
            Column("In the twin", "twin_median", _TEXT),
        ),
        depth="show",
    )


def _test_sentence(twin: ComparedTwin) -> str:
    test = twin.test
    if test.p_value is None:
        return f"Not tested: {test.p_value_reason}."
    files = counted(test.files or 0, "file")
    return (
        f"Sign-flip test over the {files} in which the secrets first occur: p = {test.p_value:.2g}."
    )


def _in_twin_text(twin: ComparedTwin) -> Iterator[Block]:
    if twin.in_twin_text:
        occur = "occurs" if twin.in_twin_text == 1 else "occur"
        many = counted(twin.in_twin_text, "secret")
        yield _line(f"Left out: {many}, which also {occur} in --twin-text.")
