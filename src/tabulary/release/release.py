"""The release: a plan and its tables, in memory or in a folder that can be checked."""

import datetime
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tabulary.core.domain import MAX_CELLS, Margin
from tabulary.core.head import Receipt
from tabulary.core.table import Table
from tabulary.core.workload import show_margin
from tabulary.errors import (
    InvalidDomain,
    InvalidPlan,
    InvalidTable,
    ReleaseDamaged,
    ReleaseError,
    UnknownMargin,
)
from tabulary.planning import ErrorLaw, Plan, plan_from_description
from tabulary.release.folder import StagedFolder, staged_folder
from tabulary.release.formats import (
    arrow_table,
    csv_bytes,
    expected_bytes,
    file_names,
    file_stems,
    parquet_bytes,
    plan_facts,
)
from tabulary.release.manifest import (
    MANIFEST,
    REPORT,
    SIGNATURE,
    Fact,
    Imprint,
    canonical_bytes,
    claims,
    installed_version,
    is_engine,
    sealed,
    signature_file,
)
from tabulary.release.promise import promise_of
from tabulary.release.publication import Publication
from tabulary.release.report import report_html
from tabulary.release.signing import PublicKey, SigningKey, public_key_of, signing_key_of
from tabulary.release.table import ReleasedTable
from tabulary.release.writers import FORMATS, extra_formats, extra_names


class Release:
    """The tables of a plan, each with the law of its errors.

    `tables` are the noisy tables of the plan's workload, in any order, their attributes in the domain's
    order. The plan decides the law of linear estimates; a constrained reconstruction has its own `errors`, and
    `reconstruction` holds facts about it. `engine` is the name of the engine that counted the records, if records
    were counted. `receipt` says which ledger paid: its identity, and the head of the account just after the debit. A
    saved or loaded release knows its folder and its signer; `verify` checks that folder again.

    >>> from tabulary.core.domain import Domain
    >>> from tabulary.core.privacy import PureDP
    >>> from tabulary.planning import plan
    >>> domain = Domain({"sex": ["F", "M"], "job": ["none", "paid"]})
    >>> noisy = Table(domain, [[12, 30], [-1, 41]])
    >>> release = Release(plan(domain, "[sex job]", privacy=PureDP(1)), [noisy])
    >>> release["job", "sex"].counts.tolist()
    [[12, -1], [30, 41]]
    >>> release
    <Release of 1 table at ε = 1: [sex job]>
    """

    def __init__(
        self,
        plan: Plan,
        tables: Iterable[Table],
        *,
        title: str = "",
        errors: Mapping[Margin, ErrorLaw] | None = None,
        reconstruction: Mapping[str, Fact] | None = None,
        engine: str | None = None,
        receipt: Receipt | None = None,
    ) -> None:
        listed = list(tables)
        given = {table.domain.attributes: table for table in listed}
        wanted = plan.workload.margins
        if given.keys() != set(wanted) or len(listed) != len(wanted):
            raise InvalidTable(
                f"the plan requests the tables {plan.workload}, but these were given: "
                f"{''.join(show_margin(table.domain.attributes) for table in listed) or 'none'}."
            )
        if not isinstance(title, str) or not title.isprintable():
            raise InvalidTable(f"the title of a release must be printable text on one line, not {title!r}.")
        if engine is not None and not is_engine(engine):
            raise InvalidTable(f"the name of an engine that counts records must be one word, not {engine!r}.")
        for margin, table in given.items():
            _check_fits(plan, margin, table)
        self.plan = plan
        self.title = title
        self.engine = engine
        self.receipt = receipt
        known = dict(errors or {})
        self.reconstruction = dict(reconstruction or {})
        self._tables = {m: ReleasedTable(given[m], known.get(m) or plan.error_of(m)) for m in wanted}
        self._staged: StagedFolder | None = None
        self._digest: str | None = None
        self._signer: PublicKey | None = None

    @classmethod
    def from_counts(
        cls,
        plan: Plan,
        counts: Mapping[Margin, ArrayLike],
        *,
        title: str = "",
        errors: Mapping[Margin, ErrorLaw] | None = None,
        reconstruction: Mapping[str, Fact] | None = None,
        engine: str | None = None,
        receipt: Receipt | None = None,
    ) -> "Release":
        """Return the release of noisy arrays, one for each margin of the plan, axes in the domain's order."""
        tables = [Table(plan.domain.project(m), array) for m, array in counts.items()]
        return cls(
            plan,
            tables,
            title=title,
            errors=errors,
            reconstruction=reconstruction,
            engine=engine,
            receipt=receipt,
        )

    @property
    def margins(self) -> tuple[Margin, ...]:
        """The tables that the release holds, in the order of the workload."""
        return self.plan.workload.margins

    @property
    def folder(self) -> Path | None:
        """Where the release was saved to or loaded from; None while it is in memory only."""
        return self._staged.target if self._staged is not None and self._staged.published else None

    @property
    def digest(self) -> str | None:
        """The SHA-256 that names the saved release, to be published beside it; None while in memory only."""
        return self._digest if self.folder is not None else None

    @property
    def signer(self) -> PublicKey | None:
        """The signer that the saved release states; None if it is not signed, or in memory only.

        Anyone can make a key with any name. `verify(key=...)` checks whether it is the publisher's key.
        """
        return self._signer if self.folder is not None else None

    def __getitem__(self, attributes: str | tuple[str, ...]) -> ReleasedTable:
        """Return the table on these attributes, in this order; `release[()]` is the total."""
        named = (attributes,) if isinstance(attributes, str) else tuple(attributes)
        try:
            released = self._tables[self.plan.domain.margin(named)]
        except (InvalidDomain, KeyError):
            known = "".join(map(show_margin, self.margins))
            raise UnknownMargin(
                f"the release has no table on {show_margin(tuple(map(str, named)))}. It has {known}."
            ) from None
        return released if named == released.margin else released.transpose(named)

    def __iter__(self) -> Iterator[ReleasedTable]:
        return iter(self._tables.values())

    def __len__(self) -> int:
        return len(self._tables)

    def __repr__(self) -> str:
        tables = f"{len(self)} table{'s' if len(self) > 1 else ''}"
        return f"<Release of {tables} at {self.plan.privacy}: {self.plan.workload}>"

    def publication(self, attributes: str | tuple[str, ...], **options: Any) -> Publication:
        """Return the table on these attributes with its words, ready for `release.writers`.

        >>> from tabulary.core.domain import Domain
        >>> from tabulary.core.privacy import PureDP
        >>> from tabulary.planning import plan
        >>> from tabulary.release.writers import FORMATS
        >>> domain = Domain({"sex": ["F", "M"]})
        >>> release = Release(plan(domain, "[sex]", privacy=PureDP(1)), [Table(domain, [12, 30])])
        >>> print(FORMATS["csv"].write(release.publication("sex")).decode())
        sex,count,standard_error,lower_95,upper_95,status
        F,12,1.35...,9,15,e
        M,30,1.35...,27,33,e
        <BLANKLINE>
        """
        table = self[attributes]
        (name,) = file_stems([table.margin]).values()
        return Publication.of(
            table,
            name=name,
            source=self.title,
            notes=(promise_of(self.plan).statement,),
            facts=plan_facts(self.plan),
            **options,
        )

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        formats: Iterable[str] = (),
        signing_key: SigningKey | str | os.PathLike[str] | None = None,
    ) -> None:
        """Write the release to a new folder, completely or not at all. An existing folder is never replaced.

        Every release holds its tables as CSV and as Parquet; `formats` names additional formats: "xlsx", "json-stat",
        "sdmx-csv", "px". With a `signing_key`, or the path of its file, the release is signed.
        """
        extra = extra_formats(formats)
        key = signing_key_of(signing_key)
        with staged_folder(path, expected_bytes=expected_bytes(self.plan, extra)) as staged:
            self.write_into(staged, formats=extra, signing_key=key)

    def write_into(
        self, staged: StagedFolder, *, formats: Iterable[str] = (), signing_key: SigningKey | None = None
    ) -> "Release":
        """Write every file into a staged folder, which its `with` block publishes; return the release."""
        imprint = Imprint(
            title=self.title,
            date=datetime.datetime.now(datetime.UTC).date().isoformat(),
            software=installed_version(),
            formats=extra_formats(formats),
            engine=self.engine,
            receipt=self.receipt,
            signer=None if signing_key is None else signing_key.public,
        )
        tables = tuple(self)
        names = file_names(self.margins)
        extra = extra_names(self.margins, imprint.formats)
        files: dict[str, bytes] = {
            REPORT: report_html(self.plan, tables, imprint, self.reconstruction).encode()
        }
        for table in tables:
            csv_name, parquet_name = names[table.margin]
            arrow = arrow_table(table, self.plan)
            files[csv_name] = csv_bytes(arrow)
            files[parquet_name] = parquet_bytes(arrow)
            for form, name in extra[table.margin].items():
                files[name] = FORMATS[form].write(self.publication(table.margin))
        manifest = sealed(claims(self.plan, tables, imprint), files, self.reconstruction)
        for name, data in files.items():
            staged.write(name, data)
        sealed_bytes = canonical_bytes(manifest)
        staged.write(MANIFEST, sealed_bytes)
        if signing_key is not None:
            staged.write(SIGNATURE, signature_file(sealed_bytes, signing_key))
        self._staged, self._digest, self._signer = staged, str(manifest["digest"]), imprint.signer
        return self

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        expected_digest: str | None = None,
        key: PublicKey | str | os.PathLike[str] | None = None,
        max_cells: int = MAX_CELLS,
    ) -> "Release":
        """Return the release in a folder, or raise ReleaseDamaged with everything that is wrong with it.

        An attacker who rewrites a whole folder can write a digest that fits it. Two arguments detect this:
        `expected_digest`, the digest that the publisher announced elsewhere, and `key`, the publisher's public key or
        the path of its file. The folder may come from a stranger: tables of more than `max_cells` are refused before
        anything is unpacked.
        """
        # Imported here: only reading a release needs Parquet.
        from tabulary.release.verify import read_release

        folder = Path(path).absolute()
        found = read_release(
            folder, expected_digest=expected_digest, key=public_key_of(key), max_cells=max_cells
        )
        release = cls(
            found.plan,
            found.tables,
            title=found.title,
            errors=found.errors,
            reconstruction=found.reconstruction,
            engine=found.engine,
            receipt=found.receipt,
        )
        release._staged, release._digest = StagedFolder(folder, published=True), found.digest
        release._signer = found.signer
        return release

    def verify(
        self,
        *,
        expected_digest: str | None = None,
        key: PublicKey | str | os.PathLike[str] | None = None,
    ) -> None:
        """Check the release's folder again, every byte and every claim; for a release in memory, only the claims.

        `expected_digest` and `key` are as in `load`.
        """
        if self.folder is not None:
            from tabulary.release.verify import read_release

            most = max(MAX_CELLS, sum(table.domain.size for table in self))
            read_release(self.folder, expected_digest=self.digest, key=public_key_of(key), max_cells=most)
        elif expected_digest is not None or key is not None:
            raise ReleaseError("a release in memory has no digest and no signature. Save it first.")
        if expected_digest is not None and expected_digest.strip().lower() != self.digest:
            raise ReleaseDamaged(
                f"the release has the digest {self.digest}, not the expected {expected_digest.strip()!r}. "
                "Do not use it; download it again from its publisher."
            )
        derived = plan_from_description(self.plan.describe())
        if derived != self.plan:
            raise InvalidPlan("the plan of this release does not agree with its own description.")
        for margin, released in self._tables.items():
            _check_fits(derived, margin, released.table)
            stated, law = released.standard_errors, derived.error_of(margin)
            if derived.reconstruct == "none" and not np.allclose(stated, law.standard_errors, rtol=1e-9):
                raise InvalidTable(f"the errors of {show_margin(margin)} are not those of the plan.")


def _check_fits(plan: Plan, margin: Margin, table: Table) -> None:
    if table.domain != plan.domain.project(margin):
        raise InvalidTable(
            f"the table on {show_margin(margin)} does not have the levels and structural zeros of the plan."
        )
    if plan.whole and table.counts.dtype.kind != "i":
        raise InvalidTable(
            f"the table on {show_margin(margin)} has real numbers, but whole numbers were measured."
        )
