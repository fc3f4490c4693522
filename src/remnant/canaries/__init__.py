"""What is planted: text templates and their spaces, image canaries, and putting them into data."""

from remnant.canaries.canary_file import read_canary_sets, write_canary_sets
from remnant.canaries.canary_set import (
    CanarySet,
    DistinctCanaries,
    distinct_canaries,
    make_canary_set,
)
from remnant.canaries.hf_dataset import insert_into_dataset
from remnant.canaries.holes import Slot
from remnant.canaries.images import (
    BY_LOSS,
    ENDS,
    KINDS,
    MADE,
    QUARTER,
    blank,
    by_loss,
    mislabelled,
    odd,
    rows_in_share,
)
from remnant.canaries.insertion import insert_into_texts, place_canaries
from remnant.canaries.own_images import ImageCanaries, OwnImages, deal_images
from remnant.canaries.own_texts import OwnTexts, deal_texts
from remnant.canaries.patches import Patch, PatchControl, Patches
from remnant.canaries.planted_dataset import PlantedDataset
from remnant.canaries.random_tokens import commonest_tokens, random_token_sequences
from remnant.canaries.template import Canary, Template
from remnant.canaries.text_file import insert_into_file

__all__ = [
    "BY_LOSS",
    "ENDS",
    "KINDS",
    "MADE",
    "QUARTER",
    "Canary",
    "CanarySet",
    "DistinctCanaries",
    "ImageCanaries",
    "OwnImages",
    "OwnTexts",
    "Patch",
    "PatchControl",
    "Patches",
    "PlantedDataset",
    "Slot",
    "Template",
    "blank",
    "by_loss",
    "commonest_tokens",
    "deal_images",
    "deal_texts",
    "distinct_canaries",
    "insert_into_dataset",
    "insert_into_file",
    "insert_into_texts",
    "make_canary_set",
    "mislabelled",
    "odd",
    "place_canaries",
    "random_token_sequences",
    "read_canary_sets",
    "rows_in_share",
    "write_canary_sets",
]
