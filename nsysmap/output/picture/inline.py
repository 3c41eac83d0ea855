"""The style sheets and scripts of a self-contained page, and the policy that lets the browser run
only these.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from nsysmap.core.records import dataclass

if TYPE_CHECKING:
    from markupsafe import Markup

HERE = Path(__file__).parent
_COMMENT = re.compile(r"^[ \t]*(//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)[ \t]*\n", re.MULTILINE)
_BEHIND = re.compile(r"[ \t]{2,}//[^\n]*$", re.MULTILINE)
_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)


@dataclass(frozen=True)
class Code:
    """The text of the one <style> and the one <script> of a page, and its
    Content-Security-Policy.
    """

    style: Markup
    script: Markup
    policy: Markup


def inlined(files: Sequence[Path]) -> Code:
    """The code of a page: its .css and .js files, concatenated in the order given."""
    from markupsafe import Markup

    style, script = (
        "\n" + "\n".join(_code(path) for path in files if path.suffix == suffix)
        for suffix in (".css", ".js")
    )
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri"
        " 'none'; form-action 'none'"
    )
    return Code(Markup(style), Markup(script), Markup(policy))


def _code(path: Path) -> str:
    """The file without the lines that are only a comment, comments behind code, and indentation: a
    page's code is read by few, and the page opened by many.  No text in our scripts goes over
    several lines, or has two slashes behind two blanks.
    """
    text = _COMMENT.sub("", path.read_text("utf-8"))
    return _INDENT.sub("", _BEHIND.sub("", text) if path.suffix == ".js" else text)


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
