"""HiGHS, the solver of linear and integer programs, set up in one way."""

import highspy


def linear_solver(**options: bool | int | float | str) -> highspy.Highs:
    """Return a solver that prints nothing and uses one thread; `options` are those of HiGHS."""
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in {"output_flag": False, "threads": 1, **options}.items():
        solver.setOptionValue(name, value)
    return solver


def simplex_solver(**options: bool | int | float | str) -> highspy.Highs:
    """Return a solver by the simplex method that starts from its last solution each time."""
    return linear_solver(presolve="off", solver="simplex", **options)
