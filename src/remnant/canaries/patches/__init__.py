"""Small pictures that are stamped onto images, and the random ones they are held against."""

from remnant.canaries.patches.patch import Patch, PatchControl
from remnant.canaries.patches.stack import Patches

__all__ = ["Patch", "PatchControl", "Patches"]
