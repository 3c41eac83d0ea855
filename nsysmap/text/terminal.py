"""Text for display: names made inert for terminals and Markdown, widths in columns, shortened names
that stay distinct.
"""

from __future__ import annotations

import json
import re
import shlex
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

_NUMBER = re.compile(r"(\d+)")
_WORD = re.compile(r"[^A-Za-z0-9]*[A-Za-z0-9]+|[^A-Za-z0-9]+")  # with the separator before it
_LONGEST_SPLIT = 4000  # characters; the middle of a longer name is cut first
_ALNUMS_BEHIND, _ALNUMS_BEFORE = re.compile(r"[A-Za-z0-9]+$"), re.compile(r"^[A-Za-z0-9]+")
_WEB = re.compile(r"(www)\.", re.IGNORECASE)
# of a person (which notifies them), a mail address, an issue: GitHub and GitLab look for these in
# the text that is shown, where an entity is the character itself again, but not across a comment
_CALLS = re.compile(r"(@(?=[\w\\])|(?<!&)#(?=\d)|!(?=\d)|\bGH-(?=\d))", re.IGNORECASE)
_MARKS = re.compile(r"([\\`*_\[\]|~<>&$]|^[-+#])")  # of Markdown
_BEYOND = re.compile(r"[^\x00-\x7e]")
_LEAST_BACK = 5  # characters of a word that are worth showing
_MOST_NUMBERS = 3  # of names that differ in a number
_LEAST_CUT = 12  # columns that a cut name keeps, whatever the width of its number


def escaped(text: str) -> str:
    """The text with control characters (and others without a glyph) escaped, so that a name cannot
    control the terminal.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def pasted(text: str) -> str:
    """The text as one word of a command for a shell (bash, zsh): quoted where it must be, without
    any character that a terminal obeys.
    """
    text = f"./{text}" if text.startswith("-") else text
    if text.isprintable():
        return shlex.quote(text)
    return (
        "$'"
        + "".join(
            f"\\{char}" if char in "\\'" else char if char.isprintable() else _byte_escapes(char)
            for char in text
        )
        + "'"
    )


def _byte_escapes(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in char.encode(errors="surrogateescape"))


def inert_json(text: str) -> str:
    """JSON with the characters of its texts escaped, as JSON does it, that a terminal might obey or
    that have no glyph.
    """
    return _BEYOND.sub(_json_escape, text)


def _json_escape(found: re.Match[str]) -> str:
    char = found[0]
    if char.isprintable():
        return char
    return "\\u007f" if char == "\x7f" else json.dumps(char)[1:-1]  # json escapes all others itself


def code(text: str) -> str:
    """The text as code, also safe inside a table: a code span, or an element if a span cannot
    contain it.
    """
    text = escaped(text)
    if text.strip() and text == text.strip() and not re.search(r"[`|\\]", text):
        return f"`{text}`"
    return (
        "<code>"
        + "".join(char if char.isalnum() or char in " ,-" else f"&#{ord(char)};" for char in text)
        + "</code>"
    )


def plain(text: str) -> str:
    """The text with everything escaped that Markdown or HTML would interpret as markup or a
    link.
    """
    marked = _MARKS.sub(r"\\\1", escaped(" ".join(text.split())))
    for mark, entity in (
        (r"\&", "&amp;"),
        (r"\<", "&lt;"),
        (r"\>", "&gt;"),
    ):
        marked = marked.replace(mark, entity)
    return quiet(marked)


def quiet(text: str) -> str:
    """HTML in which GitHub and GitLab find no link and no mention of a person, an issue or an
    address.
    """
    return _CALLS.sub(r"\1<!-- -->", _WEB.sub(r"\1&#46;", text.replace("://", ":&#47;&#47;")))


def columns(text: str) -> int:
    """The number of columns that the text takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(char: str) -> int:
    return (
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
    )


def _fits(text: str, width: int) -> bool:
    """Whether the text takes at most that many columns; stops reading a long text once it exceeds
    them.
    """
    if text.isascii():
        return len(text) <= width
    room = width
    for char in text:
        room -= _columns(char)
        if room < 0:
            return False
    return True


def shortened(text: str, width: int) -> str:
    """The text in at most that many columns: the middle of a longer one is cut out."""
    if _fits(text, width):
        return text
    if text.isascii():
        room = max(width - 1, 0)
        begin = (room + 1) // 2
        return f"{text[:begin]}…{text[len(text) - (room - begin) :]}"
    return without_middle(text, lambda cut: columns(cut) <= width)


def without_middle(text: str, fits: Callable[[str], bool]) -> str:
    """The text with as little of its middle cut out as needed to fit, according to ``fits``."""
    left, right = "", ""
    for head, tail in zip(text, reversed(text), strict=True):
        if not fits(f"{left}{head}…{right}"):
            break
        left += head
        if not fits(f"{left}…{tail}{right}"):
            break
        right = tail + right
    return f"{left}…{right}"


def between_words(text: str, width: int) -> str:
    """The shortened text, cut between words where that leaves out little more."""
    cut = shortened(text, width)
    if cut == text or "…" in text:
        return cut
    head, _, tail = cut.partition("…")
    most = width // 4
    whole_head, whole_tail = _ALNUMS_BEHIND.sub("", head), _ALNUMS_BEFORE.sub("", tail)
    # the characters next to what is left
    inside = (
        text[len(head) : len(head) + 1],
        text[-len(tail) - 1 : -len(tail) or None],
    )
    if inside[0].isalnum() and len(head) - len(whole_head) <= most and whole_head:
        head = whole_head
    if inside[1].isalnum() and len(tail) - len(whole_tail) <= most and whole_tail:
        tail = whole_tail
    return f"{head}…{tail.lstrip('.')}"


def list_of(text: str, width: int) -> str:
    """A list with commas in about that many columns at most: without its last items, whose number
    follows; items stay whole.
    """
    if _fits(text, width):
        return text
    items = text.split(", ")
    kept, room = 0, width
    while kept < len(items) and (room := room - columns(items[kept]) - 2) > 0:
        kept += 1
    if not kept:
        return between_words(text, width)
    return f"{', '.join(items[:kept])} and {len(items) - kept} more"


def told_apart(names: Sequence[str], width: int) -> list[str]:
    """The names in at most that many columns each: a longer one first loses the words that are most
    frequent in all names.

    Names that would then be equal keep the words in which they differ. Different names stay
    different; if cutting words is not enough, the later ones end in a number.
    """
    if all(len(name) <= width and columns(name) <= width for name in names):
        return list(names)
    if len(set(names)) == 1:
        return [between_words(names[0], width)] * len(names)
    words = {
        name: _WORD.findall(
            name if len(name) <= _LONGEST_SPLIT else shortened(name, _LONGEST_SPLIT)
        )
        for name in dict.fromkeys(names)
    }
    held = Counter(word for mine in words.values() for word in mine)
    cut = {name: _without_shared(mine, held, width) for name, mine in words.items()}
    for same in _alike(cut):
        found = Counter(word for name in same for word in set(words[name]))
        told = Counter(
            {word: held[word] if count == len(same) else 1 for word, count in found.items()}
        )
        cut |= {name: _without_shared(words[name], told, width) for name in same}
    taken: dict[str, str] = {}
    for name, short in cut.items():
        number, fits = 2, short
        while fits in taken.values():
            mark = f"~{number}"
            fits = (
                shortened(short, max(width - len(mark), min(_LEAST_CUT, width - len(mark)))) + mark
            )
            number += 1
        taken[name] = fits
    return [taken[name] for name in names]


def in_one(names: Sequence[str]) -> str:
    """The first name, with the numbers of the others in braces if they differ only in one:
    layer.{2,5}/attention; otherwise with the number of others.
    """
    parts = [_NUMBER.split(name) for name in dict.fromkeys(names)]
    slots = {
        at
        for mine in parts
        for at in range(len(mine))
        if len(mine) != len(parts[0]) or mine[at] != parts[0][at]
    }
    if (
        len(parts) > 1
        and len(slots) == 1
        and (slot := slots.pop()) % 2
        and all(len(mine) == len(parts[0]) for mine in parts)
    ):
        numbers = sorted((mine[slot] for mine in parts), key=int)
        told = ",".join(
            [*numbers[:_MOST_NUMBERS], *(["…"] if len(numbers) > _MOST_NUMBERS else [])]
        )
        return "".join([*parts[0][:slot], "{", told, "}", *parts[0][slot + 1 :]])
    return names[0] + (f" and {len(parts) - 1} more" if len(parts) > 1 else "")


def _alike(cut: Mapping[str, str]) -> list[list[str]]:
    """Groups of names that were cut to the same text."""
    found: dict[str, list[str]] = {}
    for name, short in cut.items():
        found.setdefault(short, []).append(name)
    return [same for same in found.values() if len(same) > 1]


def _without_shared(words: Sequence[str], held: Counter[str], width: int) -> str:
    """The words without the most frequent ones, until they fit; each omitted run becomes one
    ellipsis.

    Words that fit again after the last omission are restored, one of them possibly in part.
    """
    kept = list(words)
    text = "".join(words)
    gone: list[int] = []
    for at in sorted(
        range(len(words)), key=lambda at: -held[words[at]]
    ):  # of equally frequent ones, the first is cut first
        if columns(text) <= width:
            return _filled(words, kept, gone, width)
        if held[words[at]] == 1:  # it is unique: cut only together with all the rest
            break
        kept[at] = ""
        gone.append(at)
        text = _joined(words, kept)
    return _filled(words, kept, gone, width) if columns(text) <= width else shortened(text, width)


def _filled(words: Sequence[str], kept: list[str], gone: Sequence[int], width: int) -> str:
    """The kept words and others that fit; the rarest word is restored first."""
    room = width - columns(_joined(words, kept))
    for at in reversed(gone):
        if room < 1:
            break
        kept[at] = words[at]
        if columns(text := _joined(words, kept)) > width:
            kept[at] = ""
        else:
            room = width - columns(text)
    for at in reversed(gone):
        for cut in (room, room - 1):  # an ellipsis before it takes a column too
            if not kept[at] and _LEAST_BACK < cut < len(words[at]):
                kept[at] = words[at][:cut]
                if columns(text := _joined(words, kept)) <= width:
                    return text
                kept[at] = ""
    return _joined(words, kept)


def _joined(words: Sequence[str], kept: Sequence[str]) -> str:
    """The kept words, with an ellipsis for each omitted run."""
    text = ""
    for word, keep in zip(words, kept, strict=True):
        text += keep if keep == word or not keep else keep + "…"
        if not keep and not text.endswith("…"):
            text += "…"
    return text
