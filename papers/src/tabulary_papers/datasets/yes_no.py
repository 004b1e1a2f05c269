"""Made-up people who answer yes or no: as many questions as wanted, up to twenty."""

import numpy as np

from tabulary import Domain, Table
from tabulary.errors import InvalidTable

MAX_QUESTIONS = 20
_KINDS = 3


def yes_no_domain(questions: int) -> Domain:
    """Return a domain of so many attributes with the levels no and yes.

    >>> yes_no_domain(3).attributes
    ('x01', 'x02', 'x03')
    """
    return Domain({f"x{number:02}": ("no", "yes") for number in range(1, questions + 1)})


def yes_no(questions: int = 8, people: int = 1_000, *, seed: int = 0) -> Table:
    """Return the table of all answers of people who do not exist. The same seed gives the same table.

    There are three kinds of people, in shares of their own. Each kind has its own chance of a yes to each question,
    and answers independently; so answers hang together through the kinds, as in a latent class model.

    >>> table = yes_no(4, 100, seed=7)
    >>> table.shape, table.total
    ((2, 2, 2, 2), 100)
    """
    if not 1 <= questions <= MAX_QUESTIONS:
        raise InvalidTable(
            f"people answer 1 to {MAX_QUESTIONS} questions, not {questions}. Nothing was made."
        )
    if people < 0:
        raise InvalidTable(f"the number of people cannot be {people}. Nothing was made.")
    # numpy.random serves here because this is a model of people and not a privacy noise.
    generator = np.random.default_rng(seed)
    shares = generator.dirichlet(np.full(_KINDS, 4.0))
    chances = generator.uniform(0.05, 0.95, (_KINDS, questions))
    joint = np.zeros(2**questions)
    for share, chance in zip(shares, chances, strict=True):
        kind = np.ones(1)
        for yes in chance:
            kind = np.outer(kind, (1 - yes, yes)).ravel()
        joint += share * kind
    counts = generator.multinomial(people, joint / joint.sum())
    return Table(yes_no_domain(questions), counts.reshape((2,) * questions))
