"""The audit of a plan: its cost computed again, and what many draws from its mechanism show. Needs no records.

`cost` measures single records with the mechanism's own code and compares them. `curve` says, from the laws of the noise
alone, how well the two inputs that differ most can be distinguished. `evidence` draws and bounds what was seen. `audit`
puts them together, and runs them on a sabotaged twin as well.
"""

from tabulary.workflows.auditing.audit import AuditReport, audit

__all__ = ["AuditReport", "audit"]
