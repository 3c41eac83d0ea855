"""Text for Markdown: names of any content are shown as they are, and mark up, link and run nothing."""

from __future__ import annotations

import re

from nsysmap.base.terminal import escaped

_MARKS = re.compile(r"([\\`*_\[\]|~<>&$]|^[-+#])")


def code(text: str) -> str:
    """The text as code, also safe inside a table: a code span, or an element where a span cannot hold it."""
    text = escaped(text)
    if text.strip() and text == text.strip() and not re.search(r"[`|\\]", text):
        return f"`{text}`"
    return "<code>" + "".join(char if char.isalnum() or char in " ,-" else f"&#{ord(char)};" for char in text) + "</code>"


def plain(text: str) -> str:
    """The text with everything escaped that Markdown or HTML would take for a mark or a link."""
    marked = _MARKS.sub(r"\\\1", escaped(" ".join(text.split())))
    for mark, entity in ((r"\&", "&amp;"), (r"\<", "&lt;"), (r"\>", "&gt;"), ("://", ":&#47;&#47;"), ("www.", "www&#46;")):
        marked = marked.replace(mark, entity)
    return marked
