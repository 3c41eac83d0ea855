"""What every test runs with."""

from __future__ import annotations

import os

from hypothesis import settings

# no deadline: a slow machine is no failure; and CI draws the same examples each time
settings.register_profile("nsysmap", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("nsysmap")
