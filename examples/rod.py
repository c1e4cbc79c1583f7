import jax.numpy as jnp
import tgsr

def heat(T, kappa):           # arguments are bound BY NAME to coordinates, fields and unknowns
    return T.t - kappa * T.xx             # also T.d("x", 3), T.laplacian("x", "y"), T.xy

def cooling(T, kappa, h):
    return kappa * T.x + h * (T - 20.0)

problem = tgsr.Problem(
    name="rod",
    coordinates={"x": (0.0, 1.0), "t": (0.0, 2.0)},
    fields=["T"],
    unknowns=[
        tgsr.Unknown("kappa", guess=0.5, positive=True, unit="m2/s"),
        tgsr.Unknown("h", guess=1.0, bounds=(0, 50)),
    ],
    residuals=[heat],
    conditions=[
        tgsr.Initial("T", lambda x: 20 + 60 * jnp.sin(jnp.pi * x)),
        tgsr.Dirichlet("T", at="x=0", value=20.0),
        tgsr.Condition(cooling, at="x=1"),
    ],
    data=[tgsr.read_data("rod.csv", columns={"x": "pos_m", "t": "time_s", "T": "temp_C"}, noise=0.5)],
)

if __name__ == "__main__":
    result = tgsr.solve(problem, seed=0)
    print(result)                          # kappa = 0.1003 +- 0.0008 m2/s ...
    print(tgsr.transfer(problem, source=result, method="tgsr").compare(result))
