"""Which kind of model ``remnant audit`` is given, and the audit of that kind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from remnant.cli.options import declared
from remnant.cli.options.classifier_options import naming_classifier, refuse_unused
from remnant.cli.options.models import bases, naming_model, placed, refuse_the_same
from remnant.cli.options.naming import naming
from remnant.errors import require

if TYPE_CHECKING:
    import numpy as np

    from remnant.integrations.membership.outcome import MembershipAudit
    from remnant.progress import ProgressBar

Kind = Literal["language model", "text classifier", "image classifier"]
_FILES = (".safetensors", ".pt2", ".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle", ".onnx")
_ENDINGS: dict[str, Kind] = {
    "ForSequenceClassification": "text classifier",
    "ForImageClassification": "image classifier",
}
_NAMES = declared.option_names(
    *("attack", "success", "fpr", "confidence", "limit", "samples", "probability", "field"),
    *("seen", "unseen", "control", "base", "device", "label_field", "shape", "mean", "std"),
    *("architecture", "maker"),
) | {"reference_model": "--reference-model", "model_dir": "--model"}
_OF_NETWORKS = ("architecture", "options", "maker", "mean", "std", "shape")


def model_kind(path: Path) -> Kind:
    """Return the kind of a model, by its file or by what its folder says.

    Raises:
        InvalidInput: Its configuration cannot be read.
    """
    if path.is_file() or (not path.exists() and path.suffix in _FILES):
        return "image classifier"
    config = path / "config.json"
    if config.is_file() and not (path / "remnant.json").is_file():
        from remnant.integrations.folder_checks import read_object

        names = read_object(config).get("architectures")
        for name in names if isinstance(names, list) else []:
            for ending, kind in _ENDINGS.items():
                if str(name).endswith(ending):
                    return kind
    return "language model"


def audit_model(
    model: Path,
    *,
    seen: Path,
    unseen: Path,
    reference_model: Path | None,
    base: Path | None,
    control: Path | None,
    rng: np.random.Generator,
    progress: ProgressBar,
    given: dict[str, Any],
) -> MembershipAudit:
    """Audit a model of any kind.

    Args:
        model: Folder or file.
        seen, unseen, control: Records.
        reference_model, base: Folders or files.
        rng, progress: See ``audit_texts``.
        given: The other options by name; those of other kinds of models must not be given.

    Raises:
        RemnantError: Anything that the user can fix; errors name options.
    """
    kind = model_kind(model)
    others = () if reference_model is None else (reference_model,)
    refuse_the_same(model, others)
    settings = {name: given[name] for name in ("attack", "limit", "success", "fpr", "confidence")}
    settings |= {"control": control, "device": given["device"], "rng": rng, "progress": progress}
    paths: dict[str, Any] = {"seen": seen, "unseen": unseen, "reference_model": reference_model}
    of_networks = {name: given[name] for name in _OF_NETWORKS}
    if kind != "language model":
        unused = {name: given[name] for name in ("group", "device_map", "precision")}
        refuse_unused(f"a {kind}", base=base, **unused)
    if kind == "image classifier":
        from remnant.integrations.membership.images import Network, audit_images

        refuse_unused("images", field=given["field"], label_field=given["label_field"])
        require(_network_faults(of_networks))
        with (
            naming("--seen", seen),
            naming("--unseen", unseen),
            naming_classifier("--model", model),
            naming(**_NAMES),
        ):
            return audit_images(model, **paths, network=Network(**of_networks), **settings)
    refuse_unused("texts", **of_networks)
    if kind == "text classifier":
        from remnant.integrations.membership.labelled_texts import audit_text_classifier

        label = given["label_field"] or "label"
        bases(None, model, *others)
        with naming_model("--model", model), naming(**_NAMES):
            return audit_text_classifier(
                model, **paths, field=given["field"], label_field=label, **settings
            )
    from remnant.cli.cost import announce_passes
    from remnant.integrations.membership.texts import audit_texts

    refuse_unused("a language model", label_field=given["label_field"])
    settings |= {name: given[name] for name in ("samples", "probability", "field", "group")}
    based = bases(base, model, *others)
    placement = placed(given["device"], given["device_map"], given["precision"])
    with naming_model("--model", model), naming(**_NAMES):
        return audit_texts(
            model,
            **paths,
            base=based[model],
            announce=announce_passes,
            placement=placement,
            **settings,
        )


def _network_faults(options: dict[str, Any]) -> list[str]:
    faults = []
    if (options["mean"] is None) != (options["std"] is None):
        faults.append("--mean and --std belong together")
    if options["architecture"] is not None and options["maker"] is not None:
        faults.append("--architecture and --maker are both given; pass one of them")
    return faults
