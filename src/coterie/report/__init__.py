"""Results of a discovery: tables, JSON, model file and report page.

The package can be called: ``coterie.report(model, X, y)`` is :func:`coterie.report.report`.
"""

import sys
from types import ModuleType
from typing import Any

from coterie.report.annotated import annotate
from coterie.report.assembly import report
from coterie.report.blocks import BlockContribution
from coterie.report.details import GroupDetails, describe
from coterie.report.folder import read_result, write_result
from coterie.report.held_out import HeldOut
from coterie.report.judgement import Verdict, judge, judgement
from coterie.report.result import Discovery, Report
from coterie.report.table import write_classes, write_clumps

__all__ = [
    "BlockContribution",
    "Discovery",
    "GroupDetails",
    "HeldOut",
    "Report",
    "Verdict",
    "annotate",
    "describe",
    "judge",
    "judgement",
    "read_result",
    "report",
    "write_classes",
    "write_clumps",
    "write_result",
]


class _Callable(ModuleType):
    """Module type of this package, which can be called like :func:`report`."""

    def __call__(self, *arguments: Any, **options: Any) -> Report:
        """See :func:`coterie.report.report`."""
        return report(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
