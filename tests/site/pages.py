"""Pages of the site as files: their links, anchors, and what they load."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

# Attributes that make a browser load something with the page.
LOADED = {("link", "href"), ("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data"), ("video", "src")}


@dataclass
class Page:
    """A page by its path below the site."""

    name: str
    links: list = field(default_factory=list)
    loads: list = field(default_factory=list)
    anchors: set = field(default_factory=set)


class Reader(HTMLParser):
    def __init__(self, page: Page):
        super().__init__()
        self.page = page

    def handle_starttag(self, tag: str, attributes: list) -> None:
        for name, value in attributes:
            if name == "id" or (tag, name) == ("a", "name"):
                self.page.anchors.add(value)
            elif (tag, name) == ("a", "href"):
                self.page.links.append(value)
            elif (tag, name) in LOADED:
                self.page.loads.append(value)


def read(path: Path, site: Path) -> Page:
    page = Page(str(path.relative_to(site)))
    Reader(page).feed(path.read_text())
    return page


def is_elsewhere(address: str) -> bool:
    return bool(re.match(r"(?:[a-z]+:)?//", address))


def broken_links(pages: list[Page], site: Path) -> tuple[int, list[str]]:
    """Count of the links and loads within the site, and those without a file or an anchor. An absolute path leads out of the site."""
    anchors, count, broken = {page.name: page.anchors for page in pages}, 0, []
    for page in pages:
        for link in page.links + page.loads:
            if re.match(r"[a-z]+:", link):
                continue
            count += 1
            path, _, anchor = unquote(link).partition("#")
            target = (site / page.name).parent / path if path else site / page.name
            name = str(target.resolve().relative_to(site)) if target.resolve().is_relative_to(site) else ""
            if path.startswith("/") or not name or not target.is_file() or (anchor and anchor not in anchors.get(name, {anchor})):
                broken.append(f"{page.name}: {link}")
    return count, broken
