"""Self-influence of examples, and the checkpoints that it is summed over."""

from remnant.probes.influence.checkpoints import InfluenceCheckpoints
from remnant.probes.influence.self_influence import highest_and_lowest, self_influence

__all__ = ["InfluenceCheckpoints", "highest_and_lowest", "self_influence"]
