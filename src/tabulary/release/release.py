"""The release: measurements and the tables made of them, in memory or in a folder that can be checked."""

import datetime
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from tabulary.core.domain import MAX_CELLS, Margin
from tabulary.core.head import Receipt
from tabulary.core.labels import Labels
from tabulary.core.progress import Progress
from tabulary.core.table import Table
from tabulary.core.workload import show_margin
from tabulary.errors import (
    InvalidArgument,
    InvalidDomain,
    InvalidPlan,
    InvalidTable,
    NotCertified,
    PublicError,
    ReleaseDamaged,
    ReleaseError,
    UnknownMargin,
    listed,
)
from tabulary.planning import Face, Measurement, plan_from_description
from tabulary.reconstruct.reconstruction import LinearTables, Reconstruction
from tabulary.reconstruct.reconstruction import reconstruct as reconstruct_face
from tabulary.release.folder import MANIFEST, StagedFolder, staged_folder
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
    REPORT,
    SIGNATURE,
    EpsilonPlace,
    Imprint,
    canonical_bytes,
    claims,
    installed_version,
    is_engine,
    sealed,
    signature_file,
)
from tabulary.release.measurements import MEASUREMENTS, measured_values, measurements_bytes
from tabulary.release.promise import promise_of
from tabulary.release.publication import Publication
from tabulary.release.remaking import Verification, differing_tables, verified_face
from tabulary.release.report import report_html
from tabulary.release.signing import PublicKey, SigningKey, public_key_of, signing_key_of
from tabulary.release.table import CONFIDENCE, ReleasedTable
from tabulary.release.table_sheet import ErrorPlace
from tabulary.release.totals import TotalledTable, labelled_totals, with_totals
from tabulary.release.writers import (
    FORMATS,
    Format,
    extra_formats,
    extra_names,
    release_files,
    release_names,
)


class Release:
    """The measurements of a plan and the tables that are made of them: one published face, and the unbiased one.

    `face` holds the published tables; by default it is made as the plan says. `labels` are the words for readers, one
    `Labels` per language, the default first; `title` serves where there are none. `dropping` are the attributes for
    which a record with an unknown value was left out. `engine` is the name of the engine that counted the records, if
    records were counted. `receipt` says which ledger paid: its identity, and the head of the account just after the
    debit. A saved or loaded release knows its folder and its signer; `verify` checks that folder again.

    >>> from tabulary.core.domain import Domain
    >>> from tabulary.core.privacy import PureDP
    >>> from tabulary.planning import plan
    >>> domain = Domain({"sex": ["F", "M"], "job": ["none", "paid"]})
    >>> planned = plan(domain, "[sex job]", privacy=PureDP(1), mechanism="margins")
    >>> import numpy as np
    >>> release = Release(Measurement(planned, (np.array([[12, 30], [-1, 41]]),)))
    >>> release["job", "sex"].estimate.tolist()
    [[12, -1], [30, 41]]
    >>> bool((release["job", "sex"].counts >= 0).all()), int(release["sex"].total) == int(release[()].total)
    (True, True)
    >>> release.rebuild(reconstruct="none")["sex"].counts.tolist()
    [42, 40]
    >>> release
    <Release of 1 table at ε = 1: [sex job]>
    """

    def __init__(
        self,
        measurement: Measurement,
        face: Reconstruction | None = None,
        *,
        labels: Labels | Iterable[Labels] = (),
        title: str = "",
        dropping: Iterable[str] = (),
        engine: str | None = None,
        receipt: Receipt | None = None,
    ) -> None:
        if not isinstance(measurement, Measurement):
            raise InvalidTable(f"a release is made of a Measurement, not of a {type(measurement).__name__}.")
        if face is not None and face.measurement is not measurement:
            raise InvalidTable("the published face of a release was made of other measurements.")
        if not isinstance(title, str) or not title.isprintable():
            raise InvalidTable(f"the title of a release must be printable text on one line, not {title!r}.")
        if engine is not None and not is_engine(engine):
            raise InvalidTable(f"the name of an engine that counts records must be one word, not {engine!r}.")
        given = (labels,) if isinstance(labels, Labels) else tuple(labels)
        for each in given:
            each.check(measurement.plan.domain)
        if len({each.language for each in given}) < len(given):
            raise InvalidArgument(
                "a release has one Labels per language, but two of them have the same language."
            )
        self.measurement = measurement
        self.plan = measurement.plan
        self.face = reconstruct_face(measurement) if face is None else face
        self.translations = given or (Labels(title=title),)
        self.dropping = measurement.plan.domain.margin(dropping)
        self.engine = engine
        self.receipt = receipt
        self._linear = LinearTables(measurement)
        self._tables: dict[Margin, ReleasedTable] = {}
        self._face_again: Reconstruction | None = None
        self._staged: StagedFolder | None = None
        self._digest: str | None = None
        self._signer: PublicKey | None = None

    def rebuild(
        self, *, reconstruct: str = "auto", rounding: str = "auto", progress: Progress | None = None
    ) -> "Release":
        """Return the same release with another published face. Costs nothing: it is made of the same measurements.

        `reconstruct` and `rounding` are those of `tb.plan`. `progress` is called with (what, done, total).
        """
        face = reconstruct_face(self.measurement, Face.named(reconstruct, rounding), progress=progress)
        return Release(
            self.measurement,
            face,
            labels=self.translations,
            dropping=self.dropping,
            engine=self.engine,
            receipt=self.receipt,
        )

    @property
    def labels(self) -> Labels:
        """The words for readers, in the default language."""
        return self.translations[0]

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of the labels, the default first."""
        return tuple(labels.language for labels in self.translations)

    def in_language(self, language: str) -> Labels:
        """Return the words for readers in one of the release's languages."""
        for labels in self.translations:
            if labels.language == language:
                return labels
        has = f"It has {listed(self.languages)}." if any(self.languages) else "It does not name its language."
        raise InvalidArgument(f"this release has no labels in {language!r}. {has}")

    @property
    def title(self) -> str:
        """The title in the default language."""
        return self.labels.title

    @property
    def counted(self) -> dict[str, Any]:
        """Who is counted, as plain data: the rules, never how many they concern."""
        return {
            "left_out_if_unknown": list(self.dropping),
            "records_per_person": self.plan.neighbours.records,
            "weights": False,
        }

    @property
    def margins(self) -> tuple[Margin, ...]:
        """The tables that the release lists, in the order of the workload; it has every margin of them, too."""
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
        """Return the table on these attributes, in this order; `release[()]` is the total.

        There is one for every set of attributes below what was measured, listed or not.
        """
        named = (attributes,) if isinstance(attributes, str) else tuple(attributes)
        try:
            margin = self.plan.domain.margin(named)
            released = self._tables.get(margin) or self._made(margin)
        except (InvalidDomain, UnknownMargin):
            known = "".join(map(show_margin, self.margins))
            raise UnknownMargin(
                f"the release has no table on {show_margin(tuple(map(str, named)))}. It has {known}, and every table "
                "on some of the attributes of one of these."
            ) from None
        return released if named == margin else released.transpose(named)

    def _made(self, margin: Margin) -> ReleasedTable:
        domain = self.plan.domain.project(margin)
        try:
            counts, errors = self.face.table(margin), self.face.errors(margin)
        except UnknownMargin:
            # A folder holds the listed tables; what was measured beyond them is made again.
            counts, errors = self._again.table(margin), self._again.errors(margin)
        linear = None
        if not self.face.face.linear:
            linear = ReleasedTable(Table(domain, self._linear.table(margin)), self.plan.error_of(margin))
        found = ReleasedTable(Table(domain, counts), errors, linear)
        if margin in self.margins:
            self._tables[margin] = found
        return found

    def _remade(self, progress: Progress | None = None) -> Reconstruction:
        """Return the published face made again from the measurements, once."""
        if self._face_again is None:
            self._face_again = reconstruct_face(self.measurement, self.face.face, progress=progress)
        return self._face_again

    @cached_property
    def _again(self) -> Reconstruction:
        """The published face made again from the measurements; refused if it differs from the published tables."""
        again = self._remade()
        if differing := differing_tables(self.face, again):
            raise NotCertified(
                f"the tables on {show_margin(differing[0])} and on others that the release does not list were made on "
                "another kind of machine, which rounds otherwise. Ask for the tables that the release lists."
            )
        return again

    def __iter__(self) -> Iterator[ReleasedTable]:
        return (self[margin] for margin in self.margins)

    def __len__(self) -> int:
        return len(self.margins)

    def __repr__(self) -> str:
        tables = f"{len(self)} table{'s' if len(self) > 1 else ''}"
        return f"<Release of {tables} at {self.plan.privacy}: {self.plan.workload}>"

    def publication(
        self,
        attributes: str | tuple[str, ...],
        *,
        language: str | None = None,
        totals: bool = False,
        confidence: float = CONFIDENCE,
    ) -> Publication:
        """Return the table on these attributes with its words, ready for `release.writers`.

        By default it has the words of every language, for formats that hold several, the default language first. With
        `totals`, every attribute has the further level `_T`.

        >>> from tabulary.core.domain import Domain
        >>> from tabulary.core.privacy import PureDP
        >>> from tabulary.planning import plan
        >>> from tabulary.release.writers import FORMATS
        >>> import numpy as np
        >>> planned = plan(Domain({"sex": ["F", "M"]}), "[sex]", privacy=PureDP(1), reconstruct="none")
        >>> release = Release(Measurement(planned, (np.array([12, 30]),)))
        >>> print(FORMATS["csv"].write(release.publication("sex")).decode())
        sex,count,standard_error,lower_95,upper_95,status
        F,12,1.35...,9,15,e
        M,30,1.35...,27,33,e
        <BLANKLINE>
        """
        given = self.translations if language is None else (self.in_language(language),)
        table: ReleasedTable | TotalledTable = self[attributes]
        if totals:
            table = with_totals(self, attributes)
            given = tuple(labelled_totals(labels, table.margin) for labels in given)
        (name,) = file_stems([table.margin]).values()
        words, *others = given
        return Publication.of(
            table,
            confidence=confidence,
            name=name,
            words=words,
            translations=tuple(others),
            notes=(promise_of(self.plan).statement,),
            facts=plan_facts(self.plan),
        )

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        formats: Iterable[str] = (),
        errors: str = "below",
        signing_key: SigningKey | str | os.PathLike[str] | None = None,
        epsilon: str = "folded",
    ) -> None:
        """Write the release to a new folder, completely or not at all. An existing folder is never replaced.

        Every release holds its tables as CSV and as Parquet; `formats` names additional formats: "xlsx", "json-stat",
        "sdmx-csv", "px". `errors` says where a workbook shows the ± of a number: "below" it or "beside" it. With
        `epsilon="first"` the report names the parameter of the promise at the top, not only in its "folded" part. With
        a `signing_key`, or the path of its file, the release is signed.
        """
        extra = extra_formats(formats)
        key, place = signing_key_of(signing_key), ErrorPlace.named(errors)
        named = EpsilonPlace.named(epsilon)
        with staged_folder(
            path, expected_bytes=expected_bytes(self.plan, extra, self.translations)
        ) as staged:
            self.write_into(staged, formats=extra, errors=place, signing_key=key, epsilon=named)

    def write_into(
        self,
        staged: StagedFolder,
        *,
        formats: Iterable[str] = (),
        errors: ErrorPlace = ErrorPlace.below,
        signing_key: SigningKey | None = None,
        epsilon: EpsilonPlace = EpsilonPlace.folded,
    ) -> "Release":
        """Write every file into a staged folder, which its `with` block publishes; return the release."""
        imprint = Imprint(
            date=datetime.datetime.now(datetime.UTC).date().isoformat(),
            software=installed_version(),
            formats=extra_formats(formats),
            engine=self.engine,
            receipt=self.receipt,
            signer=None if signing_key is None else signing_key.public,
            epsilon=epsilon,
        )
        names = file_names(self.margins)
        files: dict[str, bytes] = {MEASUREMENTS: measurements_bytes(self.measurement)}
        for table in self:
            csv_name, parquet_name = names[table.margin]
            arrow = arrow_table(table, self.plan)
            files[csv_name] = csv_bytes(arrow)
            files[parquet_name] = parquet_bytes(arrow)
        files |= {name: make() for name, make in self._further_files(imprint, errors).items()}
        manifest = sealed(claims(self, imprint), files)
        for name, data in files.items():
            staged.write(name, data)
        sealed_bytes = canonical_bytes(manifest)
        staged.write(MANIFEST, sealed_bytes)
        if signing_key is not None:
            staged.write(SIGNATURE, signature_file(sealed_bytes, signing_key))
        self._staged, self._digest, self._signer = staged, str(manifest["digest"]), imprint.signer
        return self

    def _further_files(self, imprint: Imprint, errors: ErrorPlace) -> dict[str, Callable[[], bytes]]:
        """Return how each file for readers is made, by its name: the report, and the formats that were asked for."""
        files: dict[str, Callable[[], bytes]] = {REPORT: lambda: report_html(self, imprint).encode()}
        for name in release_names(imprint.formats).values():
            files[name] = lambda name=name: release_files(self, imprint, errors)[name]  # type: ignore[misc]
        for margin, named in extra_names(self.margins, imprint.formats).items():
            for form, name in named.items():
                files[name] = partial(self._written, FORMATS[form], margin)
        return files

    def _written(self, form: Format, margin: Margin) -> bytes:
        return form.write(self.publication(margin))

    def _files_made_otherwise(self, imprint: Imprint, stated: Mapping[str, str]) -> tuple[str, ...]:
        """Return the files for readers that have another SHA-256 than the stated one when they are made again."""
        left = dict.fromkeys(self._further_files(imprint, ErrorPlace.below))
        # No manifest says where ± and ε stand. They concern different files, so two turns reach all that can be.
        for errors, epsilon in zip(ErrorPlace, EpsilonPlace, strict=True):
            making = self._further_files(replace(imprint, epsilon=epsilon), errors)
            for name in tuple(left):
                # A missing package, or a machine that rounds otherwise.
                with suppress(PublicError):
                    if hashlib.sha256(making[name]()).hexdigest() == stated[name]:
                        del left[name]
        return tuple(left)

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
        release = found.release
        release._staged, release._digest = StagedFolder(folder, published=True), found.digest
        release._signer = found.imprint.signer
        return release

    def verify(
        self,
        *,
        expected_digest: str | None = None,
        key: PublicKey | str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
    ) -> Verification:
        """Check the release's folder again, every byte and every claim, and make its tables again.

        The published tables are a function of the measurements: they are made anew and compared, number by number. The
        report and the files in other formats are made anew, too. The result says how far that came. A release in memory
        has no folder; its tables are made again all the same. `expected_digest` and `key` are as in `load`. `progress`
        is called with (what, done, total).
        """
        found = None
        if self.folder is not None:
            from tabulary.release.verify import read_release

            most = max(MAX_CELLS, sum(table.domain.size for table in self), measured_values(self.plan))
            found = read_release(
                self.folder, expected_digest=self.digest, key=public_key_of(key), max_cells=most
            )
        elif expected_digest is not None or key is not None:
            raise ReleaseError("a release in memory has no digest and no signature. Save it first.")
        if expected_digest is not None and expected_digest.strip().lower() != self.digest:
            raise ReleaseDamaged(
                f"the release has the digest {self.digest}, not the expected {expected_digest.strip()!r}. "
                "Do not use it; download it again from its publisher."
            )
        if plan_from_description(self.plan.describe()) != self.plan:
            raise InvalidPlan("the plan of this release does not agree with its own description.")
        verified = verified_face(self.face, self._remade(progress))
        if found is None:
            return verified
        return replace(verified, files=self._files_made_otherwise(found.imprint, found.stated))
