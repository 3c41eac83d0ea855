"""What mkdocs is told about links that leave docs/: files of the repository that pages link to
stand on the site too, under repository/, so that a link works in both places.

A Markdown file becomes a page, another text file or a folder a page that shows what is in it, and a
notebook is copied. llms.txt, which links to the pages' sources, links to the pages.
"""

from __future__ import annotations

import logging
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
BESIDE = "repository"
LINK = re.compile(r"(?<=\]\()(?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?(?=\))")
LOG = logging.getLogger("mkdocs.plugins.site_links")
COPIED = (".ipynb",)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what pages link to outside docs/, and what those files link to in turn."""
    waiting = [file for file in files.documentation_pages() if file.inclusion.is_included()]
    while waiting:
        source = waiting.pop()
        for link in LINK.finditer(source.content_string):
            path = _in_repository(source.src_uri, link["path"])
            made = path and _site_uri(path)
            if path and made and files.get_file_from_path(made) is None:
                added = _added(path, made, config)
                files.append(added)
                if added.is_documentation_page():
                    waiting.append(added)
    for file in list(files):
        if file.src_uri.endswith("llms.txt"):
            text = file.content_string
            files.remove(file)
            files.append(File.generated(config, file.src_uri, content=_of_pages(text, file, files)))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    """The page with its links to files outside docs/ leading to where they are on the site."""

    def moved(link: re.Match[str]) -> str:
        path = _in_repository(page.file.src_uri, link["path"])
        if not path:
            return link.group()
        here = posixpath.dirname(page.file.src_uri)
        inside = path.removeprefix("docs/") if path.startswith("docs/") else _site_uri(path)
        return posixpath.relpath(inside, here or ".") + (link["anchor"] or "")

    return LINK.sub(moved, markdown)


def _in_repository(page: str, link: str) -> str | None:
    """The path in the repository that a page's link has, if it leads out of docs/ or the page is
    itself from outside; None where mkdocs follows the link, or nothing is there.
    """
    outside = page.startswith(f"{BESIDE}/")
    source = _source_of(page.removeprefix(f"{BESIDE}/")) if outside else f"docs/{page}"
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    if path.startswith("..") or not (ROOT / path).exists():
        return None
    return path if outside or not path.startswith("docs/") else None


def _site_uri(path: str) -> str | None:
    """Where a file of the repository is on the site; None for those of docs/."""
    if path.startswith("docs/"):
        return None
    plain = path.endswith((".md", *COPIED))
    return f"{BESIDE}/{path}" if plain else f"{BESIDE}/{path}.md"


def _source_of(uri: str) -> str:
    """The file or folder that a page under repository/ was made of."""
    return uri if (ROOT / uri).exists() else uri.removesuffix(".md")


def _added(path: str, uri: str, config: MkDocsConfig) -> File:
    found = ROOT / path
    if path.endswith((".md", *COPIED)):
        return File.generated(config, uri, abs_src_path=str(found))
    held = sorted(one for one in found.rglob("*") if one.is_file()) if found.is_dir() else [found]
    shown = [f"# {path}\n"]
    for one in held:
        if found.is_dir():
            shown.append(f"\n## {one.relative_to(found).as_posix()}\n")
        try:
            shown.append(f"\n`````\n{one.read_text(encoding='utf-8').rstrip()}\n`````\n")
        except UnicodeDecodeError:
            shown.append(f"\n{one.stat().st_size:,} bytes, in the repository.\n")
    return File.generated(config, uri, content="".join(shown))


def _of_pages(text: str, file: File, files: Files) -> str:
    """A text whose links to Markdown files lead to the pages that are made of them."""

    def page(link: re.Match[str]) -> str:
        found = files.get_file_from_path(link["path"])
        if found is None:
            LOG.warning("%s has a link to %s, which is no page", file.src_uri, link["path"])
            return link.group()
        return found.url + (link["anchor"] or "")

    return LINK.sub(page, text)
