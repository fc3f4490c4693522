"""What ``remnant scan`` found in text, and how exposed it is in a model.

The command prints the plain data of a result as JSON. Without ``reveal`` a result contains no
secret, no path that names one, no cost and no exact rank, not even in fields for the page alone. A
missing number is None, and the field after it says why.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from remnant.canaries.natural import (
    CleanedCopies,
    CleanedFile,
    FoundSecret,
    Place,
    Scan,
    ScannedFile,
    SkippedFile,
)
from remnant.records.outcomes import finding_row
from remnant.records.typed import Result, optional, page_only
from remnant.studies.command_result import CommandResult
from remnant.studies.exposure.result import CanaryExposure
from remnant.studies.found_secrets.parts import (
    ONLY_REVEALED,
    ComparedKind,
    FilesTest,
    MeanByTimes,
    RankCorrelation,
    ShownExposure,
    TriedExtraction,
    mean_digits,
    shown_exposure,
    shown_mean,
    shown_queries,
)
from remnant.studies.found_secrets.redacted_paths import RedactedPaths
from remnant.studies.found_secrets.verdict import NO_PROOF, NOT_SEARCHED, REMOVE
from remnant.studies.shared.result_parts import Finding, Gate, Tested
from remnant.studies.shared.wording import NO_PROBABILITY, NO_REFERENCE, counted, finite, whole

if TYPE_CHECKING:
    from remnant.studies.found_secrets.measure import FoundExposure, FoundExposures
    from remnant.studies.found_secrets.twin import TwinComparison

QUESTION = "found-secrets"
NOT_REQUESTED = "not asked for"


@dataclass(frozen=True, slots=True, kw_only=True)
class KindCount:
    """How many secrets of a kind there are, and how often they occur in how many files."""

    secrets: int
    times: int
    files: int = page_only(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedSecret:
    """A secret in the text.

    Attributes:
        form: What secrets of its form look like.
        space_bits: Bits of all secrets of its form.
        valid_bits: Bits of those that pass the kind's check, such as a checksum.
        places: Where it occurs.
        service: Who gives out keys of this form; None where that is unknown.
        secret: Only where secrets may be shown.
    """

    kind: str
    fingerprint: str
    times: int
    length: int
    form: str
    space_bits: float
    valid_bits: float
    places: tuple[Place, ...]
    service: str | None = optional()
    secret: str | None = optional()

    @property
    def checked(self) -> bool:
        """Whether secrets of its kind must pass a check."""
        return self.valid_bits < self.space_bits


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSecret:
    """The exposure of a secret that a model was tested on.

    Attributes:
        space: How many secrets have its form.
        rank, rank_low: Its rank and the lower bound of it, with ``reveal``.
        rank_least, rank_most: Bounds of its rank, without ``reveal``.
        cost: In bits; only with ``reveal``.
        shown: The same numbers, as exactly as they may be shown.
    """

    kind: str
    fingerprint: str
    times: int
    space: int | None
    space_reason: str | None = optional()
    space_bits: float
    method: str
    exact: bool
    bits: float
    low: float
    high: float | None
    high_reason: str | None = optional()
    rank: int | None
    rank_reason: str | None = optional()
    rank_low: int | None = optional()
    rank_low_reason: str | None = optional()
    rank_least: int | None = optional()
    rank_least_reason: str | None = optional()
    rank_most: int | None = optional()
    rank_most_reason: str | None = optional()
    cost: float | None
    cost_reason: str | None = optional()
    saturated: bool
    extraction: TriedExtraction | None
    extraction_reason: str | None = optional()
    shown: ShownExposure | None = page_only(None)  # noqa: RUF009


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmeasuredSecret:
    """A secret that a model could not be tested on, and why."""

    kind: str
    fingerprint: str
    times: int
    bits: None
    bits_reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelExposure:
    """How exposed the secrets are in one model.

    Attributes:
        context: Characters before a secret that the model was given.
        calibrated: Whether costs are differences to those of reference models.
        not_measured: How many more secrets there are, less frequent ones.
        secrets: The most frequent first.
        most_exposed: Places in ``secrets`` of those that were measured, the most exposed first.
        extract: Whether extraction was requested.
        model: The model's folder.
        arithmetic: How low precision was held to float64.
    """

    context: int
    calibrated: bool
    not_measured: int
    secrets: tuple[MeasuredSecret | UnmeasuredSecret, ...]
    means: tuple[MeanByTimes, ...]
    rank_correlations: tuple[RankCorrelation, ...]
    arithmetic: str | None = optional()
    most_exposed: tuple[int, ...] = page_only(())
    extract: bool = page_only(False)
    model: str = page_only("")

    @property
    def measured(self) -> tuple[MeasuredSecret, ...]:
        """The secrets that were measured, the most exposed first."""
        ordered = (self.secrets[place] for place in self.most_exposed)
        return tuple(secret for secret in ordered if isinstance(secret, MeasuredSecret))

    @property
    def reasons(self) -> dict[str, int]:
        """Why secrets were not measured, and how many for each reason."""
        reasons: dict[str, int] = {}
        for secret in self.secrets:
            if isinstance(secret, UnmeasuredSecret):
                reasons[secret.bits_reason] = reasons.get(secret.bits_reason, 0) + 1
        return reasons

    @property
    def tried(self) -> tuple[TriedExtraction, ...]:
        """The extractions that were tried."""
        return tuple(secret.extraction for secret in self.measured if secret.extraction is not None)

    @property
    def untried_reasons(self) -> list[str]:
        """Why extraction of measured secrets was not tried."""
        reasons = {secret.extraction_reason for secret in self.measured}
        return sorted(reason for reason in reasons if reason and reason != NOT_REQUESTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedTwin:
    """The exposure in the model compared with that in its twin.

    Attributes:
        in_twin_text: How many secrets were left out because they occur in the twin's text.
        not_compared: How many were measured in one of the two only.
        exposure: In the twin.
    """

    kinds: tuple[ComparedKind, ...]
    in_twin_text: int
    not_compared: int
    test: FilesTest
    exposure: ModelExposure


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedText:
    """The copy of the text in which placeholders replace the secrets.

    Attributes:
        folder: Where it is.
        counts: Replacements by kind that was searched for.
        files: Each copy.
        not_copied: Files without a copy, and why.
    """

    folder: str
    counts: dict[str, int]
    files: tuple[CleanedFile, ...]
    not_copied: tuple[SkippedFile, ...]

    @property
    def zeros(self) -> int:
        """How many numbers of JSON files are 0 in the copy."""
        return sum(file.zeros for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ScanResult(Result):
    """What ``remnant scan`` found.

    Attributes:
        cleaned: None where no cleaned copy was written.
        exposure: None without a model.
        twin: None without a twin.
        verdict: None where the scan is no gate.
    """

    ROWS: ClassVar[tuple[str, ...]] = ("secrets",)

    remnant: str = "scan"
    kinds: dict[str, KindCount]
    files: tuple[ScannedFile, ...]
    skipped: tuple[SkippedFile, ...]
    secrets: tuple[LocatedSecret, ...]
    exposure: ModelExposure | None
    twin: ComparedTwin | None
    verdict: Gate | None = optional()
    cleaned: CleanedText | None = optional()


ScanCommand = CommandResult[Gate | Finding, ScanResult]


def scan_result(
    scan: Scan,
    *,
    region: str,
    reveal: bool,
    exposure: ModelExposure | None = None,
    twin: ComparedTwin | None = None,
    verdict: Gate | None = None,
    cleaned: CleanedText | None = None,
) -> ScanResult:
    """Return what was found in files as a result.

    Args:
        scan: What was found.
        region: Of telephone numbers in the names of files.
        reveal: Whether secrets may be shown.
        exposure: In a model.
        twin: Compared with that in its twin.
        verdict: Of the gate.
        cleaned: The cleaned copy; see ``cleaned_text``.

    Guarantees:
        * Without ``reveal`` nothing of a secret is in the result, nor in the path of a file or the
          name of a field.
    """
    path = str if reveal else RedactedPaths(scan.found, region=region).redacted
    return ScanResult(
        kinds={kind: _kind_count(kind, scan) for kind in scan.kinds},
        files=tuple(dataclasses.replace(file, path=path(file.path)) for file in scan.files),
        skipped=tuple(dataclasses.replace(file, path=path(file.path)) for file in scan.skipped),
        secrets=tuple(_located(secret, path, reveal=reveal) for secret in scan.found),
        exposure=exposure,
        twin=twin,
        verdict=verdict,
        cleaned=cleaned,
    )


def cleaned_text(
    copies: CleanedCopies, *, folder: str, kinds: Sequence[str], shown_path: Callable[[str], str]
) -> CleanedText:
    """Return the copies that were written as a part of the result.

    Args:
        copies: What was written; their paths hold no secret.
        folder: Where.
        kinds: What was searched for.
        shown_path: Removes secrets from the paths of files without a copy.
    """
    return CleanedText(
        folder=folder,
        counts={kind: sum(file.counts.get(kind, 0) for file in copies.files) for kind in kinds},
        files=copies.files,
        not_copied=tuple(
            dataclasses.replace(file, path=shown_path(file.path)) for file in copies.not_copied
        ),
    )


def _kind_count(kind: str, scan: Scan) -> KindCount:
    alike = [secret for secret in scan.found if secret.kind == kind]
    return KindCount(
        secrets=len(alike),
        times=sum(secret.count for secret in alike),
        files=sum(kind in file.counts for file in scan.files),
    )


def _located(secret: FoundSecret, path: Callable[[str], str], *, reveal: bool) -> LocatedSecret:
    return LocatedSecret(
        kind=secret.kind,
        fingerprint=secret.fingerprint,
        times=secret.count,
        length=secret.length,
        form=secret.form,
        space_bits=secret.bits,
        valid_bits=math.fsum([secret.bits, -secret.check_bits]),
        places=tuple(_shown_place(place, path) for place in secret.places),
        service=secret.service or None,
        secret=secret.way.written if reveal else None,
    )


def _shown_place(place: Place, shown: Callable[[str], str]) -> Place:
    field = None if place.field is None else shown(place.field)
    return dataclasses.replace(place, path=shown(place.path), field=field)


def model_exposure(
    measured: FoundExposures, *, context: int, reveal: bool, extract: bool, model: str
) -> ModelExposure:
    """Return the exposure of found secrets in a model as a part of the result.

    Args:
        measured: What was measured.
        context: Characters before a secret that the model was given.
        reveal: Whether numbers that identify a secret may be shown.
        extract: Whether extraction was requested.
        model: The model's folder.

    Guarantees:
        * Without ``reveal`` exposure is in whole bits, there is no cost, and a rank is known to a
          factor of two.
    """
    return ModelExposure(
        context=context,
        calibrated=measured.calibrated,
        not_measured=measured.left,
        secrets=tuple(_exposure_of(secret, reveal=reveal) for secret in measured.each),
        means=tuple(_shown_mean(group, reveal=reveal) for group in measured.groups),
        rank_correlations=measured.agreements,
        arithmetic=measured.arithmetic or None,
        most_exposed=_most_exposed(measured.each),
        extract=extract,
        model=model,
    )


def _most_exposed(secrets: Sequence[FoundExposure]) -> tuple[int, ...]:
    bits = {
        place: secret.measured.bits
        for place, secret in enumerate(secrets)
        if secret.measured is not None
    }
    return tuple(sorted(bits, key=lambda place: -bits[place]))


def _exposure_of(secret: FoundExposure, *, reveal: bool) -> MeasuredSecret | UnmeasuredSecret:
    about: dict[str, Any] = {
        "kind": secret.kind,
        "fingerprint": secret.fingerprint,
        "times": secret.count,
    }
    if secret.measured is None or secret.space is None:
        return UnmeasuredSecret(**about, bits=None, bits_reason=secret.unmeasured)
    shown = shown_exposure(secret.measured, secret.space, reveal=reveal)
    return MeasuredSecret(
        **about,
        **whole("space", secret.space),
        space_bits=math.log2(secret.space),
        method=secret.measured.method,
        exact=secret.measured.exact,
        bits=shown.bits,
        low=shown.low,
        **finite("high", shown.high, NO_REFERENCE),
        **_ranks(shown, reveal=reveal),
        **_cost(secret.measured, reveal=reveal),
        saturated=secret.measured.saturated,
        **_extraction(secret, reveal=reveal),
        shown=shown,
    )


def _ranks(shown: ShownExposure, *, reveal: bool) -> dict[str, Any]:
    if shown.rank_least is None or shown.rank_most is None:
        return {"rank": None, "rank_reason": "sampled"}
    if reveal:
        return {**whole("rank", shown.rank_most), **whole("rank_low", shown.rank_least)}
    return {
        "rank": None,
        "rank_reason": ONLY_REVEALED,
        **whole("rank_least", shown.rank_least),
        **whole("rank_most", shown.rank_most),
    }


def _cost(measured: CanaryExposure, *, reveal: bool) -> dict[str, Any]:
    if not reveal:
        return {"cost": None, "cost_reason": ONLY_REVEALED}
    return finite("cost", measured.cost, NO_PROBABILITY)


def _extraction(secret: FoundExposure, *, reveal: bool) -> dict[str, Any]:
    tried = secret.extraction
    if tried is None:
        return {"extraction": None, "extraction_reason": secret.unextracted or NOT_REQUESTED}
    half, nearly = (
        shown_queries(queries, reveal=reveal) for queries in (tried.queries_50, tried.queries_99)
    )
    return {"extraction": dataclasses.replace(tried, queries_50=half, queries_99=nearly)}


def _shown_mean(group: MeanByTimes, *, reveal: bool) -> MeanByTimes:
    return dataclasses.replace(
        group,
        mean_bits=shown_mean(group.mean_bits, group.n, at_least=group.at_least, reveal=reveal),
        digits=mean_digits(group.n, reveal=reveal),
    )


def compared_twin(
    compared: TwinComparison, *, context: int, reveal: bool, extract: bool, twin: str
) -> ComparedTwin:
    """Return the comparison with a twin as a part of the result; see ``model_exposure``."""
    return ComparedTwin(
        kinds=tuple(_compared_kind(kind, reveal=reveal) for kind in compared.kinds),
        in_twin_text=compared.shared,
        not_compared=compared.unpaired,
        test=compared.test,
        exposure=model_exposure(
            compared.measured, context=context, reveal=reveal, extract=extract, model=twin
        ),
    )


def _compared_kind(kind: ComparedKind, *, reveal: bool) -> ComparedKind:
    median, twin_median = (
        shown_mean(bits, kind.n, at_least=at_least, reveal=reveal)
        for bits, at_least in (
            (kind.median_bits, kind.median_at_least),
            (kind.twin_median_bits, kind.twin_median_at_least),
        )
    )
    return dataclasses.replace(
        kind,
        median_bits=median,
        twin_median_bits=twin_median,
        digits=mean_digits(kind.n, reveal=reveal),
    )


def recorded(result: ScanResult) -> ScanCommand:
    """Return a result with the verdict of its gate, or else its finding."""
    return CommandResult(
        verdict=result.verdict or _finding(result),
        measured=result,
        scope=Tested(tested=tuple(_tested(result)), not_tested=tuple(_not_tested(result))),
    )


def _finding(result: ScanResult) -> Finding:
    found = {kind: count for kind, count in result.kinds.items() if count.secrets}
    files = counted(len(result.files), "file")
    if not found:
        return Finding(
            **finding_row(
                headline="No secret was found",
                sentence=f"{files} searched for {', '.join(result.kinds)}.",
                advice=NO_PROOF,
            )
        )
    kinds = ", ".join(f"{kind} {count.secrets}" for kind, count in found.items())
    exposed = "" if result.exposure is None else _exposed(result)
    return Finding(
        **finding_row(
            headline=f"{counted(len(result.secrets), 'secret')} found",
            sentence=f"{files}: {kinds}.{exposed}",
            advice=REMOVE,
        )
    )


def _exposed(result: ScanResult) -> str:
    exposure = result.exposure
    if exposure is None or not exposure.measured:
        return " None could be measured in the model."
    extracted = sum(tried.extracted for tried in exposure.tried)
    tried = f", {extracted} of {len(exposure.tried)} extracted" if exposure.tried else ""
    most = exposure.measured[0].shown
    highest = "" if most is None else f", the highest exposure is {most.shown_bits.text} bits"
    return f" In the model {len(exposure.measured)} were measured{highest}{tried}."


def _tested(result: ScanResult) -> Iterator[str]:
    characters = sum(file.characters for file in result.files)
    read = f"{counted(len(result.files), 'file')} with {counted(characters, 'character')}"
    yield f"{read}, searched for {', '.join(result.kinds)}"
    if result.exposure is not None:
        many = counted(len(result.exposure.secrets), "secret")
        yield f"exposure of {many} in a model, the most frequent first"


def _not_tested(result: ScanResult) -> Iterator[str]:
    yield NOT_SEARCHED
    yield "secrets that the detectors miss"
    if not result.secrets:
        yield "whether a model memorised a secret that was not found"
    elif result.exposure is None:
        yield "whether a model memorised them: --model measures that"
    elif result.twin is None and not result.exposure.calibrated:
        yield "whether they were likely before training: --twin compares with another model"
    if result.skipped:
        yield f"skipped because they are not text: {counted(len(result.skipped), 'file')}"
