"""Named random streams of one seed.

Every draw in the package comes from `stream(seed, name, *index)`. Streams with different names share nothing, so
a new diagnostic that draws from its own stream cannot move any other number.
"""

from __future__ import annotations

import hashlib

import numpy as np

STREAMS = (
    "init",
    "points",
    "observations",
    "main-batch",
    "adaptation",
    "scoring",
    "resets",
    "noise",
    "refinement",
    "probes",
    "bootstrap",
)


def stream(seed: int, name: str, *index: int) -> np.random.Generator:
    """The generator of stream `name` at `seed`; `index` counts repeats (outer epoch, layer, batch)."""
    if name not in STREAMS:
        raise ValueError(f"unknown random stream {name!r}; the streams are {', '.join(STREAMS)}")
    label = "/".join([str(int(seed)), name, *(str(int(i)) for i in index)])
    words = np.frombuffer(hashlib.sha256(label.encode()).digest(), dtype=np.uint32)
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([int(word) for word in words])))
