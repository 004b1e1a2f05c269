"""From a Measurement to the tables that are published. Post-processing: nothing here can reach a record."""

from tabulary.reconstruct.reconstruction import Reconstruction, reconstruct

__all__ = ["Reconstruction", "reconstruct"]
