"""jinns 1.10: `LossPDENonStatio` with derivative keys for an inverse problem, its own operators and its own step."""

from __future__ import annotations

import itertools

import jax
from worker import WEIGHTS, arguments, flat, serve

work, _ = arguments()
jax.config.update("jax_enable_x64", work.precision == "float64")
import equinox as eqx  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import jinns  # noqa: E402
import numpy as np  # noqa: E402
from jinns.data._Batchs import PDENonStatioBatch  # noqa: E402
from jinns.loss import LossWeightsPDENonStatio, PDENonStatio, laplacian_rev  # noqa: E402
from jinns.parameters import DerivativeKeysPDENonStatio, Params  # noqa: E402

TRUE = (0.001, 2.0, 1.0)
TIME_FIRST = [2, 0, 1]  # jinns wants (t, x, y)


class Transport(PDENonStatio):
    """The residual at one point, in jinns' operators."""

    def equation(self, t_x, u, params):
        """u_t - alpha lap u + v . grad u - Q."""
        ut, ux, uy = jax.grad(lambda at: u(at, params).squeeze())(t_x)
        laplacian = laplacian_rev(t_x, u, params)
        unknown = params.eq_params
        transport = ut - unknown.alpha * laplacian + unknown.vx * ux + unknown.vy * uy
        return (transport - source(t_x))[None]


def source(t_x):
    """The equation's right-hand side."""
    (alpha, vx, vy), (t, x, y) = TRUE, t_x
    e, sx, sy, cx, cy = jnp.exp(-t), jnp.sin(np.pi * x), jnp.sin(np.pi * y), jnp.cos(np.pi * x), jnp.cos(np.pi * y)
    return (2.0 * np.pi**2 * alpha - 1.0) * e * sx * sy + np.pi * e * (vx * cx * sy + vy * sx * cy)


def start(x):
    """The initial value."""
    return (jnp.sin(np.pi * x[0]) * jnp.sin(np.pi * x[1]))[None]


eqx_list = [
    part for before, after in itertools.pairwise(work.sizes)
    for part in ((eqx.nn.Linear, before, after), (jax.nn.tanh,))
][:-1]  # fmt: skip
u, init = jinns.nn.PINN_MLP.create(key=jax.random.PRNGKey(0), eqx_list=tuple(eqx_list), eq_type="PDENonStatio")


def linears(network):
    """The linear layers of a network or of its gradient."""
    return [layer for layer in network.layers if isinstance(layer, eqx.nn.Linear)]


def arrays(network):
    """Weights and biases."""
    return [array for layer in linears(network) for array in (layer.weight, layer.bias)]


given = [
    jnp.asarray(array) for number, (weight, bias) in enumerate(work.layers)
    for array in ((weight[TIME_FIRST] if number == 0 else weight).T, bias)
]  # fmt: skip
init = eqx.tree_at(arrays, init, given)
alpha, vx, vy = (jnp.asarray(value) for value in work["unknowns"])
params = Params(nn_params=init, eq_params={"alpha": alpha, "vx": vx, "vy": vy})
keys = DerivativeKeysPDENonStatio.from_str(
    params=params, dyn_loss="both", observations="both", boundary_loss="both", initial_condition="both"
)
loss = jinns.loss.LossPDENonStatio(
    u=u,
    dynamic_loss=Transport(),
    boundary_condition=jinns.loss.Dirichlet(),
    initial_condition_fun=start,
    loss_weights=LossWeightsPDENonStatio(
        dyn_loss=WEIGHTS["pde"],
        boundary_loss=WEIGHTS["boundary"] / 4.0,  # it adds up the means of the four faces
        initial_condition=WEIGHTS["initial"],
        observations=WEIGHTS["data"],
    ),
    derivative_keys=keys,
    params=params,
)
faces = work["boundary"][:, TIME_FIRST].reshape(4, -1, 3)
batch = PDENonStatioBatch(
    domain_batch=jnp.asarray(work["interior"][:, TIME_FIRST]),
    border_batch=jnp.asarray(np.moveaxis(faces, 0, -1)),
    initial_batch=jnp.asarray(work["initial"][:, :2]),
    obs_batch_dict=(
        {"pinn_in": jnp.asarray(work["data"][:, TIME_FIRST]), "val": jnp.asarray(work["readings"]), "eq_params": None},
    ),
)


@jax.jit
def step(params, batch):
    """What every iteration of `jinns.solve` evaluates."""
    values, gradients = loss.values_and_grads(params, batch)
    return loss.ponderate_and_sum_loss(values), loss.ponderate_and_sum_gradient(gradients)


def evaluate():
    """Loss and gradient."""
    return jax.block_until_ready(step(params, batch))


def result(found):
    """In the common order."""
    value, gradient = found
    layers = [(layer.weight.T, layer.bias) for layer in linears(gradient.nn_params)]
    layers[0] = (layers[0][0][np.argsort(TIME_FIRST)], layers[0][1])
    unknown = gradient.eq_params
    return float(value), flat(layers, [unknown.alpha, unknown.vx, unknown.vy])


serve(evaluate, result, "jinns", "jax", "jaxlib", "equinox", "numpy")
