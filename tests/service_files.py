"""The text of service files: where a table builder keeps things, and the datasets that it serves."""

from collections.abc import Mapping, Sequence


def places(state: str = "state.sqlite", ledger: str = "ledger.sqlite", *, witness: str = "") -> str:
    """Return the tables of the state, the ledger and the key."""
    witnessed = f"{witness}\n" if witness else ""
    return f'[state]\ndatabase = "{state}"\n[ledger]\ndatabase = "{ledger}"\n{witnessed}[key]\nfile = "secret.key"\n'


def dataset(
    name: str,
    levels: Mapping[str, Sequence[str | int]],
    *,
    privacy: str,
    budget: str = "",
    version: str = "1",
    method: str = "fixed",
    order: int = 2,
) -> str:
    """Return the tables of a dataset from `people.csv`; fixed answers are linear estimates.

    `privacy` and `budget` are lines such as `rho = "1/8"`.
    """
    lines = [f"[dataset.{name}]", f'version = "{version}"', 'source = "people.csv"']
    if method != "fixed":
        lines.append(f'method = "{method}"')
    lines += [f"[dataset.{name}.privacy]", privacy]
    if budget:
        lines += [f"[dataset.{name}.budget]", budget]
    lines += [f"[dataset.{name}.tables]", f"order = {order}"]
    if method == "fixed":
        lines += [f"[dataset.{name}.mechanism]", 'reconstruct = "none"']
    for attribute, values in levels.items():
        written = ", ".join(f'"{value}"' if isinstance(value, str) else str(value) for value in values)
        lines += [f"[dataset.{name}.domain.{attribute}]", f"levels = [{written}]"]
    return "\n".join(lines) + "\n"
