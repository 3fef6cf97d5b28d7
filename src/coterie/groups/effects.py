"""Properties of a group that follow from its effects: class, target, ratios, and a remark about contradictions."""

from __future__ import annotations

import math
from typing import Any

# What the exponential of an effect can be a ratio of.
RATIO_KINDS = ("odds", "hazard", "rate", "mean")


def finite_exp(value: float) -> float:
    """Return the exponential of a number, bounded by a finite value."""
    return math.exp(min(value, 700.0))


class EffectProperties:
    """Properties of a group that follow from its effects."""

    weight: float | None
    class_weights: dict[Any, float] | None
    used: bool
    effect: float | None
    effect_interval: tuple[float, float] | None
    class_effects: dict[Any, float] | None
    target_effects: dict[str, float] | None
    ratio_kind: str | None

    @property
    def marks(self) -> Any:
        """Class that larger values of the support feature indicate: that of the largest effect, if it is positive.

        Before the effects are estimated, the weights decide.
        """
        known = self.class_effects or self.class_weights
        if not known:
            return None
        label = max(known, key=lambda one: known[one])
        return label if known[label] > 0.0 else None

    @property
    def note(self) -> str | None:
        """Remark about a group that the model does not use, or whose weight and effect have opposite signs."""
        if not self.used:
            return "not used by the model"
        return None if not self._contradictory else "weight of opposite sign"

    @property
    def _contradictory(self) -> bool:
        """Whether the weight of the support feature and its effect have opposite signs.

        The weight for several targets is a norm, without a sign.
        """
        if self.effect is None or self.weight is None or self.target_effects is not None:
            return False
        weight, effects = self.weight, self.class_effects
        if effects and self.class_weights and len(effects) > 2:
            weight = self.class_weights[max(effects, key=lambda label: abs(effects[label]))]
        return weight * self.effect < 0.0

    @property
    def odds_ratio(self) -> float | None:
        """Odds ratio per standard deviation of the support feature: exp of the effect. None for models without classes."""
        return None if self.class_effects is None or self.effect is None else finite_exp(self.effect)

    @property
    def hazard_ratio(self) -> float | None:
        """Hazard ratio per standard deviation of the support feature: exp of the effect. None for other models."""
        return finite_exp(self.effect) if self.ratio_kind == "hazard" and self.effect is not None else None

    @property
    def rate_ratio(self) -> float | None:
        """Rate ratio of counts per standard deviation of the support feature: exp of the effect. None for other models."""
        return finite_exp(self.effect) if self.ratio_kind == "rate" and self.effect is not None else None

    @property
    def mean_ratio(self) -> float | None:
        """Ratio of means per standard deviation of the support feature: exp of the effect. None for other models."""
        return finite_exp(self.effect) if self.ratio_kind == "mean" and self.effect is not None else None

    @property
    def ratio_interval(self) -> tuple[float, float] | None:
        """Limits of the 95 % interval of the odds, hazard, rate or mean ratio, or None if it is unknown."""
        if self.ratio_kind is None or self.effect_interval is None:
            return None
        low, high = self.effect_interval
        return finite_exp(low), finite_exp(high)

    @property
    def main_target(self) -> str | None:
        """Target of ``effect``, if there are several: the one with the largest effect relative to its scale."""
        known = {} if self.target_effects is None else self.target_effects
        return next((name for name, effect in known.items() if effect == self.effect), None)
