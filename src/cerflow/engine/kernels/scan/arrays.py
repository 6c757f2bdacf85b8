"""The arrays of a scan, by the address of its words."""

from __future__ import annotations

from cerflow.engine.kernels.base.shared_arrays import group_at
from cerflow.engine.scan.layout import ScanArrays

scan_at = group_at(ScanArrays)
