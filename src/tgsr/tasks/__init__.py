"""The benchmark tasks, written as any user would write a problem: each gives (problem, truth)."""

from tgsr.tasks._boundary_layer import boundary_layer as boundary_layer
