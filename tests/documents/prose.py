"""Sentences of a document's prose, and their length: code, tables, headings and pictures are no prose."""

import re
from pathlib import Path

# The most words of a sentence, on average, and of the longest.
MEAN, LONGEST = 20, 40


def paragraphs(text: str) -> list[str]:
    """Paragraphs and items of lists, each in one line."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    found = [""]
    for line in text.splitlines():
        if not line.strip() or line.startswith(("#", "|", "![", "    ")):
            found.append("")
            continue
        if re.match(r"\s*([-*]|\d+\.) ", line):
            found.append("")
        found[-1] += " " + line.strip()
    return [paragraph.strip() for paragraph in found if paragraph.strip()]


def sentences(text: str) -> list[list[str]]:
    """The words of each sentence, those of commands in it too."""
    found = []
    for paragraph in paragraphs(text):
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)
        plain = re.sub(r"^([-*]|\d+\.) ", "", plain).replace("*", "")
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z`])", plain):
            words = [word for word in sentence.split() if re.search(r"\w", word)]
            if words:
                found.append(words)
    return found


def problem(document: Path) -> str | None:
    """The reason why the sentences of a document are too long; None if they are not."""
    found = sentences(document.read_text())
    mean = sum(map(len, found)) / len(found)
    longest = max(found, key=len)
    if mean > MEAN:
        return f"{len(found)} sentences have {mean:.1f} words on average, more than {MEAN}"
    if len(longest) > LONGEST:
        return f"a sentence has {len(longest)} words, more than {LONGEST}: {' '.join(longest)}"
    return None
