"""The shapes of what the service takes and gives, for its OpenAPI description.

What is sent is checked against them. What is answered is written as bytes once, by other hands, and the tests hold it
against these shapes.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel

Names = list[str]
Estimate = Literal["published", "linear"]

_BY = Field(
    description="The attributes of the table, in the order in which they are to stand; none gives the total.",
    examples=[["sex", "age"]],
)
_WHERE = Field(
    description="Only those in these levels: one level for an attribute. The table is a slice of the larger one.",
    examples=[{"region": "North"}],
)
_KEEP = Field(
    description="The levels that are shown of an attribute of the table; all of them unless it is named here.",
    examples=[{"age": ["0-14", "15-64"]}],
)


class _Asked(BaseModel):
    # What is not known is refused: a filter with a slip of the pen must not count everybody.
    model_config = ConfigDict(extra="forbid", strict=True)


class AskedMargin(_Asked):
    """Which table: by which attributes, of whom, and which of its levels."""

    by: Annotated[Names, _BY] = []
    where: Annotated[dict[str, str], _WHERE] = {}
    keep: Annotated[dict[str, Names], _KEEP] = {}


class AskedTable(AskedMargin):
    """A table, and which estimate of it."""

    estimate: Annotated[
        Estimate,
        Field(
            description="`published`: what the dataset publishes. `linear`: the unbiased estimate that tests need; it "
            "may be negative. Both are made of the same measurements."
        ),
    ] = "published"


class AskedTest(_Asked):
    """A test of a table: are its two attributes independent, or how far are two of its cells apart?"""

    test: Annotated[Literal["independence", "difference"], Field(description="Which test.")]
    by: Annotated[Names, _BY]
    where: Annotated[dict[str, str], _WHERE] = {}
    cells: Annotated[
        list[dict[str, str]] | None,
        Field(
            description="For a difference, two cells of the table by their levels. A cell that leaves out an "
            "attribute is the sum over its levels.",
            examples=[[{"sex": "F"}, {"sex": "M"}]],
        ),
    ] = None


class ProblemModel(BaseModel):
    """What stood in the way (RFC 9457)."""

    type: Annotated[str, Field(description="The kind of problem.", examples=["table-refused"])]
    title: str
    status: int
    detail: Annotated[str, Field(description="What was asked, what stood in the way, what to do next.")]
    instance: Annotated[str, Field(description="The path that was asked.")]


class Health(BaseModel):
    """That the service answers."""

    status: Literal["ok"]


class VariableModel(BaseModel):
    """An attribute as a reader sees it."""

    name: str
    label: str
    description: str
    levels: Names
    names: Annotated[
        dict[str, str], Field(description="What readers call a level, where that is not the level itself.")
    ]


class DatasetLine(BaseModel):
    """One dataset in the list of them."""

    id: str
    title: str
    description: str
    method: Literal["fixed", "interactive", "cell-key"]
    version: str
    differentially_private: bool


class DatasetList(BaseModel):
    """A page of the list of datasets."""

    items: list[DatasetLine]
    page: int
    size: int
    total: Annotated[int, Field(description="How many datasets there are on all pages.")]
    next: Annotated[str | None, Field(description="Where the next page is; null on the last one.")]


class AllowedTablesModel(BaseModel):
    """Which tables may be asked for: rules that read no data."""

    order: Annotated[int, Field(description="The most attributes of a table, filters included.")]
    forbidden: Annotated[list[Names], Field(description="Attributes that no table may have together.")]
    max_cells: Annotated[int, Field(description="The most cells of a table, filters included.")]


class PromiseModel(BaseModel):
    """What is promised, to whom, on what condition, and what is not."""

    statement: str
    meaning: Names
    protected: str
    conditions: Names
    not_promised: Names


class NeighboursModel(BaseModel):
    """What one person can change."""

    relation: str
    records: int
    sensitive: Names
    may_drop: Annotated[
        bool,
        Field(
            description="Whether a record may be left out because of a value it holds, so that the total has noise."
        ),
    ]


class SignerModel(BaseModel):
    """Who signs the documents of tables, in the header Tabulary-Signature."""

    name: str
    public_key: Annotated[str, Field(description="The Ed25519 public key: 32 bytes in base64.")]
    fingerprint: Annotated[str, Field(description="The first half of the key's SHA-256.")]


class DatasetDetails(DatasetLine):
    """All that is public about a dataset, but for its tables."""

    variables: list[VariableModel]
    structural_zeros: Annotated[
        list[dict[str, Names]], Field(description="Impossible combinations of levels.")
    ]
    allowed_tables: AllowedTablesModel
    promise: PromiseModel
    privacy: Annotated[
        dict[str, str] | None,
        Field(
            description="What all tables together cost, or one question of an interactive dataset; exact fractions as "
            "text. Null without differential privacy.",
            examples=[{"kind": "zcdp", "rho": "1/8"}],
        ),
    ]
    neighbours: NeighboursModel | None
    plan: Annotated[
        str | None,
        Field(description="The digest of the plan behind all tables; null where each has a plan of its own."),
    ]
    signer: Annotated[
        SignerModel | None, Field(description="Who signs the tables; null where they are not signed.")
    ]


class QuestionModel(BaseModel):
    """The question that is answered."""

    by: Names
    where: dict[str, str]
    keep: dict[str, Names]


class TableVariable(BaseModel):
    """An attribute of a table, with the levels that are shown."""

    name: str
    label: str
    levels: Names


Numbers = list[float | int | None]


class TableModel(BaseModel):
    """A table. The lists are flat, the last attribute fastest; a number is null where it is withheld or not known."""

    schema_: Annotated[
        str, Field(alias="schema", description="The meaning of this document, which never changes.")
    ]
    dataset: str
    version: str
    method: Literal["fixed", "interactive", "cell-key"]
    question: QuestionModel
    variables: list[TableVariable]
    impossible: Annotated[list[int], Field(description="The places of the structural zeros.")]
    count: Numbers
    standard_error: Numbers | None
    lower_95: Numbers | None
    upper_95: Numbers | None
    errors: Annotated[
        Literal["plan", "simulated", "unknown"], Field(description="Where the errors are known from.")
    ]
    plan: str | None
    reconstructed: Annotated[bool, Field(description="Whether the table was made non-negative.")]
    perturbation: Annotated[
        dict[str, Any] | None, Field(description="How counts were perturbed where there is no plan.")
    ]
    promise: str


class Accuracy(BaseModel):
    """How accurate a table will be, and what it would cost. Known from the plan: asking for it counts nobody."""

    dataset: str
    version: str
    method: Literal["fixed", "interactive", "cell-key"]
    question: QuestionModel
    table: Annotated[Names, Field(description="All attributes that are counted, filters included.")]
    cells: Annotated[int, Field(description="How many cells the answer has.")]
    standard_error: Annotated[
        float | None, Field(description="The root mean square over the possible cells; null where not known.")
    ]
    half_width_95: Annotated[
        float | None,
        Field(description="How far a count may be off, in 95 of 100 cases, in the worst cell."),
    ]
    price: Annotated[
        dict[str, str] | None, Field(description="What asking now would cost; null if it is free.")
    ]


class HypothesisResult(BaseModel):
    """What a test says. It knows the noise of the table, and simulates nothing: the same question, the same answer."""

    dataset: str
    version: str
    test: Literal["independence", "difference"]
    question: QuestionModel
    plan: str | None
    p_value: Annotated[
        float, Field(description="How likely so large a statistic is if the hypothesis is true.")
    ]
    assumed: Annotated[Names, Field(description="What the p-value rests on.")]
    statistic: float | None = None
    degrees_of_freedom: int | None = None
    cells: list[dict[str, str]] | None = None
    estimate: float | None = None
    standard_error: float | None = None
    lower_95: float | None = None
    upper_95: float | None = None


class PlanModel(RootModel[dict[str, Any]]):
    """A plan: what is measured, at what scale, with what noise; exact fractions as text."""
