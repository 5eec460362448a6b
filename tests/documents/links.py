"""Links between the documents of the repository: the file is there, and so is the heading."""

import re
from pathlib import Path

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?) *#*$", re.M)
FENCED = re.compile(r"^```.*?^```", re.M | re.S)


def anchors(text: str) -> set[str]:
    """The names that headings get, as GitHub makes them, and those that a text gives."""
    found = set(re.findall(r'<a (?:name|id)="([^"]+)"', text))
    for heading in HEADING.findall(FENCED.sub("", text)):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


def broken(document: Path) -> list[str]:
    """The links of a document that lead nowhere."""
    wrong = []
    for link in LINK.findall(FENCED.sub("", document.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        if not target.exists():
            wrong.append(link)
        elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
            wrong.append(link)
    return wrong
