"""The routes of datasets: their list, the public facts about each, and the plan behind its tables."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Annotated

from fastapi import FastAPI, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from tabulary.builder.api.answering import Answering
from tabulary.builder.api.asking import question_in_query, refuse_unknown
from tabulary.builder.api.bodies import Body
from tabulary.builder.api.describing import NOT_MODIFIED, REFUSED, UNKNOWN, DatasetName, operation
from tabulary.builder.api.models import DatasetDetails, DatasetList, Health, PlanModel
from tabulary.builder.problems import HTTPProblem
from tabulary.builder.service import ServedDataset
from tabulary.core.domain import Margin
from tabulary.core.privacy import describe_privacy
from tabulary.release import PublicKey
from tabulary.release.exchange import document_bytes
from tabulary.workflows.answering.answers import ProtectionMethod

LARGEST_PAGE = 1_000


class Paging(BaseModel):
    """The requested part of a list."""

    model_config = ConfigDict(extra="forbid")

    page: Annotated[int, Field(ge=1, le=1_000_000, description="The number of the page; the first is 1.")] = 1
    size: Annotated[int, Field(ge=1, le=LARGEST_PAGE, description="The number of datasets per page.")] = 100


def add_datasets(app: FastAPI, answering: Answering) -> None:
    """Add the routes of datasets."""
    health = b'{"status":"ok"}'

    @app.get("/api/health", **operation("datasets", "get_health", "Whether the service answers", Health, {}))
    async def get_health() -> Response:
        """Confirm that the service answers."""
        return Response(health, headers={"Cache-Control": "no-store"}, media_type="application/json")

    @app.get("/api/datasets", **operation("datasets", "list_datasets", "The datasets", DatasetList, {}))
    async def list_datasets(paging: Annotated[Paging, Query()]) -> Response:
        """List the datasets, one page at a time."""
        datasets = list(answering.service.datasets.values())
        page, size = paging.page, paging.size
        more = page * size < len(datasets)
        document = {
            "items": [_line(dataset) for dataset in datasets[(page - 1) * size : page * size]],
            "page": page,
            "size": size,
            "total": len(datasets),
            "next": f"/api/datasets?page={page + 1}&size={size}" if more else None,
        }
        return Response(document_bytes(document), media_type="application/json")

    @app.get(
        "/api/datasets/{id}",
        **operation("datasets", "get_dataset", "A dataset", DatasetDetails, {**UNKNOWN, **NOT_MODIFIED}),
    )
    async def get_dataset(request: Request, name: DatasetName) -> Response:
        """Give all public facts about a dataset: its attributes, the allowed tables, and the promise."""
        refuse_unknown(request.query_params.multi_items(), ())
        dataset = answering.dataset(name)
        return await answering.response(request, DetailsQuestion(dataset, answering.service.signer))

    @app.get(
        "/api/datasets/{id}/plan",
        **operation(
            "datasets",
            "get_plan",
            "The plan behind a table",
            PlanModel,
            {**UNKNOWN, **NOT_MODIFIED, **REFUSED},
            query=("by",),
        ),
    )
    async def get_plan(request: Request, name: DatasetName) -> Response:
        """Give the plan behind a table: the measurements, their scale and their noise. Reads no data.

        The plan determines the law of the errors, and with it anyone can check the promise. A dataset with fixed
        answers has one plan for all its tables together.
        """
        dataset = answering.dataset(name)
        domain, items = dataset.answers.domain, request.query_params.multi_items()
        margin = question_in_query(domain, items, known=("by",)).margin(domain)
        dataset.answers.allowed_tables.refuse(margin)
        # If all tables share one plan, it is written once.
        wanted = () if dataset.answers.method.has_one_plan else margin
        return await answering.response(request, PlanQuestion(dataset, wanted))


@dataclass(frozen=True, eq=False)
class _FreeQuestion:
    """A question about a dataset itself, not for a table: it is free, and its answer is a JSON document."""

    dataset: ServedDataset

    @property
    def payer(self) -> None:
        """None: the answer is free."""
        return

    @property
    def is_test(self) -> bool:
        """False: no hypothesis is tested."""
        return False


@dataclass(frozen=True, eq=False)
class DetailsQuestion(_FreeQuestion):
    """The public facts about a dataset; `signer` signs its tables."""

    signer: PublicKey | None

    @property
    def key(self) -> Hashable:
        """What the body depends on."""
        return "details", self.dataset.name, self.dataset.answers.version

    def body(self) -> Body:
        """Return the details, written."""
        return Body.json(_details(self.dataset, self.signer))


@dataclass(frozen=True, eq=False)
class PlanQuestion(_FreeQuestion):
    """The plan behind the table on a margin of a dataset."""

    margin: Margin

    @property
    def key(self) -> Hashable:
        """What the body depends on."""
        return "plan", self.dataset.name, self.dataset.answers.version, self.margin

    def body(self) -> Body:
        """Return the plan, written."""
        return Body.json(_plan(self.dataset, self.margin))


def _line(dataset: ServedDataset) -> dict[str, object]:
    method = dataset.answers.method
    return {
        "id": dataset.name,
        "title": dataset.title,
        "description": dataset.description,
        "method": method.value,
        "version": dataset.answers.version,
        "differentially_private": method is not ProtectionMethod.cell_key,
    }


def _details(dataset: ServedDataset, signer: PublicKey | None) -> dict[str, object]:
    answers, domain = dataset.answers, dataset.answers.domain
    plan = dataset.largest_plan
    return {
        **_line(dataset),
        "variables": [
            {
                "name": name,
                "label": variable.label,
                "description": variable.description,
                "levels": list(domain.levels_of(name)),
                "names": dict(variable.levels),
            }
            for name, variable in dataset.variables.items()
        ],
        "labels": [labels.describe() for labels in dataset.labels],
        "structural_zeros": domain.describe()["structural_zeros"],
        "allowed_tables": answers.allowed_tables.describe(),
        "promise": answers.promise.describe(),
        "privacy": None if plan is None else describe_privacy(plan.privacy),
        "neighbours": None if plan is None else plan.describe()["neighbours"],
        "plan": plan.digest() if plan is not None and answers.method.has_one_plan else None,
        "signer": _signer(signer),
        "release": None
        if dataset.seal is None
        else {"digest": dataset.seal.digest, "signer": _signer(dataset.seal.signer)},
    }


def _signer(signer: PublicKey | None) -> dict[str, str] | None:
    return None if signer is None else {**signer.describe(), "fingerprint": signer.fingerprint}


def _plan(dataset: ServedDataset, margin: Margin) -> dict[str, object]:
    plan = dataset.answers.plan_of(margin)
    if plan is None:
        raise HTTPProblem(
            404,
            "no-plan",
            f"{dataset.name!r} is protected by the method {dataset.answers.method.value!r}, which has no plan: it is "
            "not differentially private.",
        )
    return plan.describe()
