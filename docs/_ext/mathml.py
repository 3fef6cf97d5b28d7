"""Render formulas as MathML, which browsers display directly; MathJax would be loaded from the network."""

from __future__ import annotations

import html
import re
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.util import logging

_LOG = logging.getLogger(__name__)


def _converted(node: Any, block: bool) -> str:
    tex = re.sub(r"\\[bB]igg?[lr]?(?![a-zA-Z])", "", node.astext())  # Browsers choose the sizes of brackets.
    tex = re.sub(r"\\dots(?![a-zA-Z])", r"\\ldots", tex)
    try:
        return str(latex2mathml.tex2mathml(tex, as_block=block))
    except Exception as error:  # The converter raises many kinds of errors on unknown commands.
        _LOG.warning("This formula cannot be rendered (%s): %s", error, node.astext(), location=node)
        return f"<code>{html.escape(node.astext())}</code>"


def _inline(writer: Any, node: Any) -> None:
    writer.body.append(_converted(node, block=False))
    raise nodes.SkipNode


def _block(writer: Any, node: Any) -> None:
    writer.body.append(f"<div>{_converted(node, block=True)}</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer under the name ``mathml``."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
