"""Everything that reaches the disk: atomic, checksummed files, run directories and checkpoints.

Nothing above this floor writes a file any other way.
"""

from tgsr.storage._arrays import npz_bytes as npz_bytes
from tgsr.storage._arrays import read_arrays as read_arrays
from tgsr.storage._arrays import read_tensors as read_tensors
from tgsr.storage._arrays import tensor_bytes as tensor_bytes
from tgsr.storage._arrays import write_arrays as write_arrays
from tgsr.storage._arrays import write_tensors as write_tensors
from tgsr.storage._atomic import file_digest as file_digest
from tgsr.storage._atomic import read_bytes as read_bytes
from tgsr.storage._atomic import write_bytes as write_bytes
from tgsr.storage._checkpoint import Checkpoint as Checkpoint
from tgsr.storage._find import find_runs as find_runs
from tgsr.storage._json import canonical_json as canonical_json
from tgsr.storage._json import parse_json as parse_json
from tgsr.storage._json import read_json as read_json
from tgsr.storage._json import read_sealed as read_sealed
from tgsr.storage._json import write_json as write_json
from tgsr.storage._json import write_sealed as write_sealed
from tgsr.storage._lock import RunLockedError as RunLockedError
from tgsr.storage._run import RunDirectory as RunDirectory
from tgsr.storage._run import State as State
from tgsr.storage._run import Status as Status
