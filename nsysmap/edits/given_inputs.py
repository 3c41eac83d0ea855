"""Reads the inputs on which two models are compared."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import numpy as np

from nsysmap.core.errors import NsysmapError, named_path

if TYPE_CHECKING:
    from nsysmap.edits.view import Array


def read_inputs(path: str) -> dict[str, Array]:
    """The arrays of an .npz file by name.

    Raises NsysmapError if it is none.
    """
    remedy = "save the inputs with numpy.savez, each by its name"
    try:
        with np.load(named_path(path), allow_pickle=False) as held:
            if not isinstance(held, np.lib.npyio.NpzFile):
                raise NsysmapError(path, "is no .npz file", remedy)
            return {name: held[name] for name in held.files}
    except FileNotFoundError:
        raise NsysmapError(path, "there is no such file", remedy) from None
    except (OSError, ValueError, zipfile.BadZipFile):
        raise NsysmapError(path, "is no .npz file of arrays", remedy) from None
