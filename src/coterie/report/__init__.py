"""What a discovery leaves on the disk: tables, JSON, the model and a page to read."""

from coterie.report.annotated import annotate
from coterie.report.classes import write_classes
from coterie.report.clumps import write_clumps
from coterie.report.folder import read_result, write_result
from coterie.report.judgement import HeldOut, judgement
from coterie.report.result import DiscoveryResult

__all__ = [
    "DiscoveryResult",
    "HeldOut",
    "annotate",
    "judgement",
    "read_result",
    "write_classes",
    "write_clumps",
    "write_result",
]
