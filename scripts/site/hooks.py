"""Hooks of the site's generator: anchors as other readers of Markdown make them, and the list of the reference."""

import json
import re
from pathlib import Path


def slug(heading: str, separator: str) -> str:
    """The anchor of a heading, as links in the documents have it: one hyphen for each space."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


def on_config(config):
    config.mdx_configs.setdefault("toc", {})["slugify"] = slug
    pages = json.loads((Path(config.docs_dir) / "reference.json").read_text())
    config.nav = [{"Reference": pages} if entry == {"Reference": "REFERENCE"} else entry for entry in config.nav]
    return config
