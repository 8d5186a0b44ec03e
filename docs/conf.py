"""How the documentation is built: `make docs` turns this folder into out/docs.

Pages are Markdown, the reference comes from docstrings, and nothing is asked of the network. Pages
of the repository's root are included, not copied.
"""

import sys
from pathlib import Path

from ezgreedy import __version__

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(Path(__file__).parent))

project = "ezgreedy"
author = "the ezgreedy authors"
version = release = __version__
html_title = "ezgreedy"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "build_steps"]
exclude_patterns = ["images"]

html_theme = "furo"
# The playground is made there; the folder must exist before the build begins.
html_extra_path = ["../out/docs-extra"]
(ROOT / "out" / "docs-extra").mkdir(parents=True, exist_ok=True)
html_copy_source = False

# The notebook is run by tests/repository, and its outputs are stored in it.
nb_execution_mode = "off"
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

# Docstrings say `name` for code, and their arguments have no types: signatures do.
default_role = "literal"
napoleon_use_rtype = False
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": True}
