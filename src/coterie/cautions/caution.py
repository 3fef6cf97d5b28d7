"""A caution: its kind, and a text that says what was found and what to do."""

from __future__ import annotations

from dataclasses import dataclass

DEPENDENT, DUPLICATES, IDENTIFIER, LEAK = "dependent samples", "duplicate samples", "identifier", "leak"
RELATIVES, STRUCTURE, SMALL_CLASSES = "related samples", "population structure", "small classes"


@dataclass(frozen=True)
class Caution:
    """A property of the data that can make results wrong.

    Attributes
    ----------
    kind : str
        ``"dependent samples"``, ``"duplicate samples"``, ``"identifier"``, ``"leak"``, ``"related samples"``,
        ``"population structure"`` or ``"small classes"``.
    text : str
        Description, with advice.

    Examples
    --------
    >>> from coterie.cautions import Caution
    >>> Caution("leak", "Feature 'x' equals the label.").to_dict()
    {'kind': 'leak', 'text': "Feature 'x' equals the label."}
    """

    kind: str
    text: str

    def to_dict(self) -> dict[str, str]:
        """Return kind and text, as in ``result.json``."""
        return {"kind": self.kind, "text": self.text}


def percent(share: float) -> str:
    """Format a share for readers.

    Examples
    --------
    >>> from coterie.cautions.caution import percent
    >>> percent(0.987), percent(0.004), percent(1.0)
    ('99 %', '0.4 %', '100 %')
    """
    return f"{100 * share:.1f} %" if share < 0.01 else f"{100 * share:.0f} %"
