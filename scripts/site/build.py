#!/usr/bin/env python3
"""Builds the site of the documentation: `make site`.

    scripts/site/build.py [--prefix build]

The sources are the documents of the repository under their own paths, the files that they name, and a reference of commands and settings, which
the staged command prints. The generator (requirements.txt) lives in build/site/tools, sources and pages in build/site/source and build/site/html.
Pages load nothing from elsewhere, and can be opened as files.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SITE = ROOT / "build" / "site"
SOURCE, PAGES, TOOLS = SITE / "source", SITE / "html", SITE / "tools"
sys.path.insert(0, str(HERE))
import reference  # noqa: E402

DOCUMENTS = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "ARCHITECTURE.md", "tests/README.md", "examples/kernels/README.md", "packaging/README.md"]
# The folder of the files that documents name and that are no documents. Browsers show text by its ending.
FILES = "files"
# The first page has no list of others beside it.
HOME = "---\nhide: [navigation]\n---\n\n"
# Whoever searches for a command or a setting finds the page about it before those that use it.
BOOST = "---\nsearch:\n  boost: 3\n---\n\n"
LINK = re.compile(r"(\]\()([^)\s#]+)")


def documents() -> list[Path]:
    return [Path(name) for name in DOCUMENTS] + sorted(path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md"))


def tools() -> None:
    """The generator, in an environment of its own, made anew where the versions have changed."""
    wanted, made = HERE / "requirements.txt", TOOLS / "requirements.txt"
    if made.exists() and made.read_text() == wanted.read_text():
        return
    shutil.rmtree(TOOLS, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", TOOLS], check=True)
    subprocess.run([TOOLS / "bin/pip", "install", "-q", "--disable-pip-version-check", "--only-binary", ":all:", "-r", wanted], check=True)
    shutil.copy(wanted, made)


def sources(prefix: Path) -> None:
    shutil.rmtree(SOURCE, ignore_errors=True)
    known = set(documents())
    for page in known:
        write(page, (HOME if page == Path("README.md") else "") + indented(linked(page, (ROOT / page).read_text(), known)))
    for picture in (ROOT / "docs").glob("*.svg"):
        write(picture.relative_to(ROOT), picture.read_text())
    (SOURCE / "assets").mkdir()
    for name in ("iframe-worker.js", "site.css", "icon.svg"):
        shutil.copy(HERE / name, SOURCE / "assets")
    pages = reference.pages(prefix)
    for page in pages:
        write(Path(page.path), BOOST + page.text)
    (SOURCE / "reference.json").write_text(json.dumps([page.path for page in pages]))


def write(page: Path, text: str) -> None:
    (SOURCE / page).parent.mkdir(parents=True, exist_ok=True)
    (SOURCE / page).write_text(text)


def linked(page: Path, text: str, known: set) -> str:
    """The text with links to copies of the files that are no documents."""
    def copied(link: re.Match) -> str:
        path = Path(os.path.normpath(page.parent / link[2]))
        if re.match(r"[a-z]+:", link[2]) or path in known or path.suffix == ".svg":
            return link[0]
        if not (ROOT / path).is_file():
            sys.exit(f"site: {page}: there is no file {path}")
        write(Path(FILES) / f"{path}.txt", (ROOT / path).read_text())
        return link[1] + os.path.relpath(f"{FILES}/{path}.txt", page.parent)
    return "".join(part if part.lstrip().startswith("```") else LINK.sub(copied, part)
                   for part in re.split(r"(^ *```.*?^ *```$)", text, flags=re.M | re.S))


def indented(text: str) -> str:
    """The text with what belongs to an item of a list indented by four, and with a blank line before lists and after paragraphs in them: the generator wants both."""
    lines, fenced, deep, before, parted = [], False, 0, "", False
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if not fenced and (item := re.match(r"([-*]|\d+\.) +", line)):
            if before and (not deep or parted):
                lines.append("")
            deep, parted = len(item[0]), False
        elif line and not fenced and indent < deep and not before:
            deep = 0
        inside = bool(line) and 0 < deep <= indent
        parted |= inside and not before
        lines.append(" " * (4 - deep) + line if inside else line)
        fenced ^= line.lstrip().startswith("```")
        before = line
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prefix", type=Path, default=ROOT / "build", help="has bin/fishplate (default: ./build)")
    options = parser.parse_args()
    tools()
    sources(options.prefix)
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    built = subprocess.run([TOOLS / "bin/mkdocs", "build", "--quiet", "--clean", "--config-file", HERE / "mkdocs.yml"], env=environment)
    if built.returncode == 0:
        # Both name addresses of a server that has these pages at its root.
        for name in ("404.html", "sitemap.xml", "sitemap.xml.gz"):
            (PAGES / name).unlink()
        print(f"{PAGES}/index.html: {len(list(PAGES.rglob('*.html')))} pages")
    return built.returncode


if __name__ == "__main__":
    sys.exit(main())
