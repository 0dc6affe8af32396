"""Sphinx configuration. Neither the build nor the pages load anything from a network."""

import logging
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "rankgauge"
author = "The rankgauge developers"
project_copyright = author
release = version = installed_version("rankgauge")

extensions = [
    "public_api",  # docs/_ext: links names in modules to public names
    "mathml",  # docs/_ext: renders formulas without a script
    "measures",  # docs/_ext: writes a page for each measure
    "navigation",  # docs/_ext: copies only titles for the navigation of each page
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_ext", "_scripts"]
source_suffix = {".md": "markdown", ".markdown": "markdown"}  # .markdown: written by the build

# Markdown
myst_enable_extensions = ["deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3

# Docstrings and signatures
default_role = "code"  # `single` backticks in a docstring
autodoc_class_signature = "separated"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True

# Names from other libraries; their documentation is not looked up, since it needs a network
nitpick_ignore_regex = [
    (r"py:.*", rf"{library}(\..*)?")
    for library in (
        "_pytest",
        "click",
        "collections",
        "dataclasses",
        "datetime",
        "io",
        "narwhals",
        "np",
        "numpy",
        "os",
        "pathlib",
        "random",
        "rankgauge.stats",  # not public
        "starlette",
    )
]
nitpick_ignore = [
    # Not public; in the signature of rankgauge.formats.content_of.
    ("py:class", "rankgauge.formats.contents.FileContent"),
    ("py:class", "rankgauge.formats.texts.TextSource"),
    ("py:class", "NDArray"),
    # Parts of signatures whose defaults (<factory>) are not valid Python.
    ("py:class", "tuple[str"),
    ("py:class", "tuple[int"),
    ("py:class", "tuple[float"),
    ("py:class", "date"),
    ("py:class", "Model"),
    ("py:class", "Part"),
    ("py:class", "StoredQrels"),
    ("py:class", "rankgauge.comparison.differences.Computation"),  # private fields of results
    ("py:class", "rankgauge.comparison.deciding._Bounds"),
    ("py:class", "rankgauge.web.jobs.Runner"),  # made by serve()
    ("py:class", "rankgauge.core.threads._T"),
    ("py:class", "rankgauge.core.threads._R"),
    ("py:class", "Connection"),  # from SQLAlchemy
    # Not public
    ("py:class", "rankgauge.benchmark.journal.Journal"),
    ("py:class", "rankgauge.checks.fixes._Copy"),
    ("py:class", "rankgauge.store.database.Database"),
    ("py:class", "rankgauge.store.database.Store"),
    ("py:class", "rankgauge.core.ids.Ids"),
    ("py:class", "rankgauge.data.special_qrels.SpecialQrels"),
    ("py:class", "rankgauge.measures.declaration.Declaration"),
    ("py:class", "rankgauge.data.preference_qrels._Ranked"),
    ("py:class", "rankgauge.stats.agreement.Agreement"),
    ("py:class", "rankgauge.stats.plackett_luce.NoneRate"),
    ("py:class", "rankgauge.stats.plackett_luce.PlackettLuce"),
    ("py:class", "rankgauge.rendering.tables.Table"),
    *(
        ("py:class", alias)
        for alias in (
            "BoolArray",
            "Detailed",
            "Duplicates",
            "Value",
            "Traits",
            "TieMean",
            "SpecialQrels",
            "Ranking",
            "Params",
            "Kernel",
            "Judgments",
            "IntArray",
            "Ids",
            "FloatArray",
            "Queries",
            "Source",
            "Table",
            "Term",
            "Ties",
            "Undefined",
            "Unjudged",
            "Values",
        )
    ),
    ("py:class", "rankgauge.core.pair_table.PairTable"),
    ("py:class", "rankgauge.measures.declaration.Traits"),
    ("py:class", "rankgauge.evaluation.profile_deviations.Offer"),
    ("py:class", "rankgauge.tutorials.ir_measures.CalcResults"),
    ("py:class", "rankgauge.tutorials.ir_measures.Metric"),
]

# Look
html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"rankgauge {release}"
html_static_path = ["_static", "../src/rankgauge/reports/templates/theme.css"]
html_css_files = ["rankgauge.css"]
html_copy_source = False
# The button copies commands without prompts and output; blocks of text, such as output, have none.
copybutton_prompt_text = r"\$ |> |>>> |\.\.\. "
copybutton_copy_empty_lines = False
copybutton_prompt_is_regexp = True
copybutton_selector = "div:not(.highlight-text) > div.highlight pre"
html_show_sphinx = False

# A glob may match no pages (the warning has no type, so suppress_warnings cannot name it)
logging.getLogger("sphinx.sphinx.directives.other").addFilter(
    lambda record: getattr(record, "subtype", None) != "empty_glob"
)
