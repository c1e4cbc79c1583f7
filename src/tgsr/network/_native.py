"""The native engine: the two passes of `tgsr.network.native` in place of XLA's matrix products.

Forward gives the output channels and keeps the pre-activations; what a user's residual does with the channels stays in
JAX; backward turns their slopes into those of weights, points and operator coefficients. Same numbers as `propagate` to
rounding, for tanh networks and derivatives up to second order.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tgsr.network._build import Library, library
from tgsr.network._channels import Index, order_of
from tgsr.network._propagate import Channels, Layer, Operator, Tape, initial_layers, propagate

ONE = -1  # in place of a column: the coefficient is 1
MOST_CHANNELS = 64
Structure = tuple[tuple[Index, ...], ...]  # per operator its derivatives, in the order of their coefficients


def serves(activation: str, channels: Channels, operators: int = 0) -> bool:
    """Whether the native passes cover a network's activation and channels."""
    return activation == "tanh" and order_of(channels) <= 2 and len(channels) + operators <= MOST_CHANNELS


def propagate_native(
    layers: Sequence[Layer],
    x: jax.Array,
    channels: Channels,
    operators: Sequence[Operator] = (),
    found: Library | None = None,
) -> Tape:
    """Channels and operators of a tanh network's outputs at points x, as `propagate` gives them (no layer inputs)."""
    widths = (layers[0][0].shape[0], *(weight.shape[1] for weight, _ in layers))
    weights = jnp.concatenate([jnp.ravel(array) for layer in layers for array in layer])
    return propagate_flat(weights, widths, x, channels, operators, found)


def propagate_flat(
    weights: jax.Array,
    widths: tuple[int, ...],
    x: jax.Array,
    channels: Channels,
    operators: Sequence[Operator] = (),
    found: Library | None = None,
) -> Tape:
    """The same from one vector of weights, every layer's matrix and bias in order, so that slopes of several passes are
    added in one piece; `widths` are those of inputs, hidden layers and outputs."""
    structure = tuple(tuple(operator) for operator in operators)
    columns = [coefficient for operator in operators for coefficient in operator.values()]
    coefficients = jnp.stack(columns, axis=1) if columns else jnp.zeros((len(x), 0), x.dtype)
    outputs = passes(library() if found is None else found, widths, channels, structure)(weights, x, coefficients)
    n = len(channels)
    return Tape({index: outputs[i] for i, index in enumerate(channels)}, tuple(outputs[n:]), ())


def rules(channels: Channels, structure: Structure) -> tuple[np.ndarray, np.ndarray]:
    """What each channel starts from at the first layer (channel, axis, column) and its second-order part
    (channel, a, b, column): the channels whose product it gains and the coefficient's column."""
    place = {index: slot for slot, index in enumerate(channels)}
    starts, terms, column = [], [], 0
    entries = [(slot, index, ONE) for index, slot in place.items() if index]
    for slot, operator in enumerate(structure, start=len(channels)):
        entries += [(slot, index, column + i) for i, index in enumerate(operator)]
        column += len(operator)
    for slot, index, at in entries:
        if len(index) == 1:
            starts.append((slot, index[0], at))
        else:
            terms.append((slot, place[index[:1]], place[index[1:]], at))
    return np.array(starts, np.int64).reshape(-1), np.array(terms, np.int64).reshape(-1)


@functools.lru_cache(maxsize=256)
def passes(
    found: Library, widths: tuple[int, ...], channels: Channels, structure: Structure
) -> Callable[..., jax.Array]:
    """outputs (channels + operators, points, fields) of (flat weights, points, coefficients), with its derivative."""
    starts, terms = rules(channels, structure)
    attributes: dict[str, Any] = {"widths": np.array(widths, np.int64), "starts": starts, "terms": terms}
    total = len(channels) + len(structure)

    def call(which: str, results: Sequence[tuple[int, ...]], *arrays: jax.Array) -> Sequence[jax.Array]:
        dtype = arrays[0].dtype
        types = [jax.ShapeDtypeStruct(shape, dtype) for shape in results]
        target = found.target(which, dtype.name)
        # One after another under vmap: the calls share the threads anyway.
        return jax.ffi.ffi_call(target, types, vmap_method="sequential")(*arrays, **attributes)

    def sizes(weights: jax.Array, points: int) -> tuple[int, int, int]:
        return _sizes(found, weights.dtype.itemsize, widths, points, total, len(terms) // 4)

    def forward(weights: jax.Array, x: jax.Array, coefficients: jax.Array):
        kept, scratch, _ = sizes(weights, len(x))
        shapes = [(total, len(x), widths[-1]), (kept,), (scratch,)]
        outputs, kept, _ = call("forward", shapes, weights, x, coefficients)
        return outputs, (weights, x, coefficients, kept)

    def backward(saved: Sequence[jax.Array], slopes: jax.Array):
        weights, x, coefficients, kept = saved
        shapes = [weights.shape, x.shape, coefficients.shape, (sizes(weights, len(x))[2],)]
        return tuple(call("backward", shapes, weights, x, coefficients, kept, slopes)[:3])

    both = jax.custom_vjp(lambda *arguments: forward(*arguments)[0])
    both.defvjp(forward, backward)
    return both


def _sizes(
    found: Library, item_bytes: int, widths: tuple[int, ...], points: int, channels: int, terms: int
) -> tuple[int, int, int]:
    """How many numbers are kept between the passes, and the scratch of each."""
    sizes = (ctypes.c_int64 * 3)()
    given = (ctypes.c_int64 * len(widths))(*widths)
    found.handle.tgsr_sizes(
        ctypes.c_int64(item_bytes), given, ctypes.c_int64(len(widths)), ctypes.c_int64(points),
        ctypes.c_int64(channels), ctypes.c_int64(terms), sizes,
    )  # fmt: skip
    return sizes[0], sizes[1], sizes[2]


BARS = {"float64": 1e-12, "float32": 1e-4}


def trusted(found: Library) -> str:
    """A sentence if a library's values or slopes are not those of `propagate`, else nothing."""
    # Whatever is going on around: real numbers, in both precisions.
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        return _difference(found)


def _difference(found: Library) -> str:
    channels = ((), (0,), (1,), (0, 1))
    rng = np.random.Generator(np.random.Philox(1))
    layers = [
        (weight, jnp.asarray(rng.normal(0.0, 0.3, bias.shape))) for weight, bias in initial_layers(2, (19, 7), 2, rng)
    ]
    given = (layers, rng.uniform(-1.0, 1.0, (101, 2)), rng.normal(size=(3, 101)), rng.normal(size=(5, 101, 2)))

    def slopes(engine: Callable[..., Tape], arrays: Any) -> Any:
        def loss(layers: Any, coefficients: jax.Array) -> jax.Array:
            operator = {(0, 0): coefficients[0], (1, 1): coefficients[1], (1,): coefficients[2]}
            tape = engine(layers, arrays[1], channels, operators=[operator])
            return jnp.sum(arrays[3] * jnp.stack([*tape.outputs.values(), *tape.operators]))

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(arrays[0], arrays[2])

    for dtype, bar in BARS.items():
        arrays = jax.tree.map(lambda a, dtype=dtype: jnp.asarray(a, dtype), given)
        truth = slopes(functools.partial(propagate, activation_name="tanh"), arrays)
        ours = slopes(functools.partial(propagate_native, found=found), arrays)
        for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(truth), strict=True):
            if not float(jnp.max(jnp.abs(a - b))) <= bar * float(jnp.max(jnp.abs(b))):
                return f"slopes in {dtype} differ from those of JAX"
    return ""
