"""Bringing the index up to date with the disk: decide what to read, read, merge, store, and forget what is gone."""

from sessiond.scan.refresh import refresh, scan_all
from sessiond.scan.scanner import GAP_FILE_BYTES, RACY_MS, SECOND_LOOK_MS, Outcome, Progress, Scanner

__all__ = [
    "GAP_FILE_BYTES",
    "RACY_MS",
    "SECOND_LOOK_MS",
    "Outcome",
    "Progress",
    "Scanner",
    "refresh",
    "scan_all",
]
