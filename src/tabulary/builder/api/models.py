"""The schemas of requests and answers, for the OpenAPI description of the service.

The service checks requests against them. Other modules write the answers as bytes, and the tests compare those with
these schemas.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel

Names = list[str]
Estimate = Literal["published", "linear"]
Method = Literal["fixed", "interactive", "cell-key", "released"]

_BY = Field(
    description="The attributes of the table, in the order of its axes; none gives the total.",
    examples=[["sex", "age"]],
)
_WHERE = Field(
    description="Count only people in these levels, one level per attribute. The table is a slice of the larger one.",
    examples=[{"region": "North"}],
)
_KEEP = Field(
    description="The levels to show of an attribute of the table. All levels of any other attribute are shown.",
    examples=[{"age": ["0-14", "15-64"]}],
)


class _Asked(BaseModel):
    # Unknown fields are refused: a misspelled filter must not count everybody.
    model_config = ConfigDict(extra="forbid", strict=True)


class AskedMargin(_Asked):
    """The requested table: its attributes, its filters and its levels."""

    by: Annotated[Names, _BY] = []
    where: Annotated[dict[str, str], _WHERE] = {}
    keep: Annotated[dict[str, Names], _KEEP] = {}


class AskedTable(AskedMargin):
    """The requested table and the kind of estimate."""

    estimate: Annotated[
        Estimate,
        Field(
            description="`published`: the published table. `linear`: the unbiased estimate that tests need; it "
            "may be negative. Both come from the same measurements."
        ),
    ] = "published"


class AskedTest(_Asked):
    """A test of a table: of the independence of its two attributes, or of the difference of two of its cells."""

    test: Annotated[Literal["independence", "difference"], Field(description="The kind of test.")]
    by: Annotated[Names, _BY]
    where: Annotated[dict[str, str], _WHERE] = {}
    keep: Annotated[dict[str, Names], _KEEP] = {}
    cells: Annotated[
        list[dict[str, str | list[str]]] | None,
        Field(
            description="For a difference, two cells of the table by their levels. Levels in a list are added up, and "
            "a cell that leaves out an attribute is the sum over its levels, or over those in `keep`.",
            examples=[[{"sex": "F", "age": ["15-64", "65+"]}, {"sex": "M"}]],
        ),
    ] = None
    per: Annotated[
        Names | None,
        Field(
            description="For a difference of percentages: the attributes within whose levels they are made, which both "
            "cells name; an empty list gives shares of the whole table.",
            examples=[["sex"]],
        ),
    ] = None


class ProblemModel(BaseModel):
    """The reason why a request failed (RFC 9457)."""

    type: Annotated[str, Field(description="The kind of problem.", examples=["table-refused"])]
    title: str
    status: int
    detail: Annotated[str, Field(description="The request, the reason why it failed, and what to do next.")]
    instance: Annotated[str, Field(description="The path of the request.")]


class Health(BaseModel):
    """Confirms that the service answers."""

    status: Literal["ok"]


class VariableModel(BaseModel):
    """An attribute as a reader sees it."""

    name: str
    label: str
    description: str
    levels: Names
    names: Annotated[
        dict[str, str],
        Field(description="The label of a level for readers, if it differs from the level itself."),
    ]


class VariableWords(BaseModel):
    """The words about an attribute in one language."""

    label: str
    description: str
    levels: Annotated[dict[str, str], Field(description="The labels of levels, by their codes.")]
    unit: str
    notes: list[str]
    source: str


class Words(BaseModel):
    """The words about a dataset in one language. An empty text was not given."""

    title: str
    description: str
    unit: Annotated[str, Field(description="What is counted.")]
    source: str
    notes: list[str]
    variables: dict[str, VariableWords]
    language: Annotated[str, Field(description="A tag such as fi; empty if the publisher names none.")]
    total: Annotated[str, Field(description="The word for a total.")]


class DatasetLine(BaseModel):
    """One dataset in the list of them."""

    id: str
    title: str
    description: str
    method: Method
    version: str
    differentially_private: bool


class DatasetList(BaseModel):
    """A page of the list of datasets."""

    items: list[DatasetLine]
    page: int
    size: int
    total: Annotated[int, Field(description="The number of datasets on all pages together.")]
    next: Annotated[str | None, Field(description="The address of the next page; null on the last page.")]


class AllowedTablesModel(BaseModel):
    """The rules for allowed tables. They read no data."""

    order: Annotated[int, Field(description="The most attributes of a table, filters included.")]
    forbidden: Annotated[list[Names], Field(description="Sets of attributes that no table may combine.")]
    max_cells: Annotated[int, Field(description="The most cells of a table, filters included.")]
    within: Annotated[
        list[Names] | None,
        Field(
            description="The largest tables of a release: every table is a part of one of them. Null if the records "
            "themselves are counted."
        ),
    ]


class PromiseModel(BaseModel):
    """The promise: to whom, on which conditions, and what is not promised."""

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
            description="Whether a record can be left out because of its values, so that the total has noise."
        ),
    ]


class SignerModel(BaseModel):
    """A signer: of the tables' documents, with the signature in the header Tabulary-Signature, or of a release."""

    name: str
    public_key: Annotated[str, Field(description="The Ed25519 public key: 32 bytes in base64.")]
    fingerprint: Annotated[str, Field(description="The first half of the key's SHA-256.")]


class ReleaseModel(BaseModel):
    """The release that all tables of a dataset come from."""

    digest: Annotated[
        str, Field(description="The SHA-256 that names the release: `tabulary verify` prints it.")
    ]
    signer: Annotated[
        SignerModel | None,
        Field(description="The signer that the release states; null if it is not signed. Compare the key."),
    ]


class DatasetDetails(DatasetLine):
    """All public facts about a dataset except its tables."""

    variables: list[VariableModel]
    labels: Annotated[
        list[Words], Field(description="All words for readers, once per language, the default first.")
    ]
    structural_zeros: Annotated[
        list[dict[str, Names]], Field(description="Impossible combinations of levels.")
    ]
    allowed_tables: AllowedTablesModel
    promise: PromiseModel
    privacy: Annotated[
        dict[str, str] | None,
        Field(
            description="The cost of all tables or, if interactive, of one question; exact fractions as "
            "text. Null without differential privacy.",
            examples=[{"kind": "zcdp", "rho": "1/8"}],
        ),
    ]
    neighbours: NeighboursModel | None
    plan: Annotated[
        str | None,
        Field(description="The digest of the plan behind all tables; null if each table has its own plan."),
    ]
    signer: Annotated[
        SignerModel | None, Field(description="The signer of the tables; null if they are not signed.")
    ]
    release: Annotated[
        ReleaseModel | None,
        Field(description="The release that all tables come from; null if they come from records."),
    ]


class QuestionModel(BaseModel):
    """The question that this document answers."""

    by: Names
    where: dict[str, str]
    keep: dict[str, Names]


class TableVariable(BaseModel):
    """An attribute of a table, with its shown levels."""

    name: str
    label: str
    levels: Names


Numbers = list[float | int | None]


class TableModel(BaseModel):
    """A table. The lists are flat, the last attribute fastest; a withheld or unknown number is null."""

    schema_: Annotated[
        str, Field(alias="schema", description="The meaning of this document, which never changes.")
    ]
    dataset: str
    version: str
    method: Method
    question: QuestionModel
    variables: list[TableVariable]
    impossible: Annotated[list[int], Field(description="The positions of the structural zeros.")]
    count: Numbers
    standard_error: Numbers | None
    lower_95: Numbers | None
    upper_95: Numbers | None
    estimate: Annotated[
        Numbers | None,
        Field(
            description="The unbiased linear estimates from the same measurements, which tests need; null if `count` "
            "holds them, or if there are none. The law of their errors follows from the plan."
        ),
    ]
    errors: Annotated[Literal["plan", "simulated", "unknown"], Field(description="The source of the errors.")]
    plan: str | None
    reconstructed: Annotated[bool, Field(description="Whether the table was made non-negative.")]
    perturbation: Annotated[
        dict[str, Any] | None, Field(description="The perturbation of the counts, if there is no plan.")
    ]
    promise: str


class Accuracy(BaseModel):
    """The expected error and the price of a table. Both come from the plan: this request counts nobody."""

    dataset: str
    version: str
    method: Method
    question: QuestionModel
    table: Annotated[Names, Field(description="All attributes of the counted table, filters included.")]
    cells: Annotated[int, Field(description="The number of cells of the answer.")]
    standard_error: Annotated[
        float | None, Field(description="The root mean square over the possible cells; null if not known.")
    ]
    half_width_95: Annotated[
        float | None,
        Field(description="The error that the worst cell does not exceed in 95 of 100 cases."),
    ]
    price: Annotated[
        dict[str, str] | None, Field(description="The price of the table now; null if it is free.")
    ]


class HypothesisResult(BaseModel):
    """The result of a test. It accounts for the noise and simulates nothing: the same question has the same answer."""

    dataset: str
    version: str
    test: Literal["independence", "difference"]
    question: QuestionModel
    plan: str | None
    p_value: Annotated[
        float,
        Field(description="The probability of a statistic at least this large if the hypothesis is true."),
    ]
    assumed: Annotated[Names, Field(description="The basis of the p-value.")]
    statistic: float | None = None
    degrees_of_freedom: int | None = None
    cells: list[dict[str, str | list[str]]] | None = None
    per: Names | None = None
    estimate: float | None = None
    standard_error: float | None = None
    lower_95: float | None = None
    upper_95: float | None = None


class PlanModel(RootModel[dict[str, Any]]):
    """A plan: the measurements, their scale and their noise; exact fractions as text."""
