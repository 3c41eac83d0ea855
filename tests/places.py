"""Where tests find files: what the repository holds, and material beside it that a checkout may
lack.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
FIXTURES = ROOT / "fixtures"
GOLDEN = ROOT / "tests" / "golden"
NAME_TABLES = ROOT / "tests" / "name_tables"
SHARED = ROOT.parent / "shared"
"""Captures, names and engines that are not part of the repository: tests that want them skip
without.
"""
CAPTURES = SHARED / "captures"
