"""How the documentation is built: `make docs`."""

import pathlib
import tomllib

from pygments.lexers.special import TextLexer
from sphinx.highlighting import lexers

_pyproject = tomllib.loads(pathlib.Path(__file__).parents[1].joinpath("pyproject.toml").read_text())

project = "tenure"
author = copyright = "The tenure authors"  # noqa: A001 - Sphinx asks for this name
release = _pyproject["project"]["version"]

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
nitpicky = True

html_theme = "furo"
html_title = f"tenure {release}"

# The rules of a Redis user, read by a test; Pygments knows no such language.
lexers["acl"] = TextLexer()
