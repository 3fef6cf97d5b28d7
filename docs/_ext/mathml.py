"""Formulas as MathML, which browsers draw themselves: MathJax would be fetched from the web by every reader."""

from __future__ import annotations

import html
import re
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.util import logging

_LOG = logging.getLogger(__name__)


def _converted(node: Any, block: bool) -> str:
    tex = re.sub(r"\\[bB]igg?[lr]?(?![a-zA-Z])", "", node.astext())  # sizes of brackets, which browsers find themselves
    tex = re.sub(r"\\dots(?![a-zA-Z])", r"\\ldots", tex)
    try:
        return str(latex2mathml.tex2mathml(tex, as_block=block))
    except Exception as error:  # the converter fails in many ways on what it does not know
        _LOG.warning("this formula cannot be shown (%s): %s", error, node.astext(), location=node)
        return f"<code>{html.escape(node.astext())}</code>"


def _inline(writer: Any, node: Any) -> None:
    writer.body.append(_converted(node, block=False))
    raise nodes.SkipNode


def _block(writer: Any, node: Any) -> None:
    writer.body.append(f"<div>{_converted(node, block=True)}</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Offer the renderer by the name of ``mathml``."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
