"""Real data, read from where it is: scikit-learn, IDX files, PNG sheets."""

from remnant.data.catalogue import DATA_SETS, load_images
from remnant.data.images import AuditData, Images

__all__ = ["DATA_SETS", "AuditData", "Images", "load_images"]
