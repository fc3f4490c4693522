"""Small pictures that are stamped onto images, and the random ones they are held against."""

from remnant.canaries.patches.patch import Patch, PatchControl
from remnant.canaries.patches.stack import Patches
from remnant.canaries.patches.variants import PatchVariant, patch_variants

__all__ = ["Patch", "PatchControl", "PatchVariant", "Patches", "patch_variants"]
