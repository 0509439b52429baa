"""The artifact folder: a compiled program in memory and on disk."""

from raptor_pim.artifacts.model import Artifact, ArtifactConfig, TensorInfo
from raptor_pim.artifacts.read import read_artifact
from raptor_pim.artifacts.write import write_artifact

__all__ = ["Artifact", "ArtifactConfig", "TensorInfo", "read_artifact", "write_artifact"]
