"""What a discovery leaves on the disk: tables, JSON, the model and a page to read."""

from coterie.report.folder import read_result, write_result
from coterie.report.result import DiscoveryResult

__all__ = ["DiscoveryResult", "read_result", "write_result"]
