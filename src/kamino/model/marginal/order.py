"""A sequence for the model when nothing else asks for one."""

from __future__ import annotations

from collections.abc import Sequence

from kamino.model.protocol import ModelAttribute

#: Ordered attributes are modelled in about this many bins, whatever their size.
ORDERED_BINS = 16


def order_attributes(
    attributes: Sequence[ModelAttribute], functional: Sequence[tuple[str, str]] = ()
) -> tuple[str, ...]:
    """Put small attributes first and wide ones last, without reading any data.

    An attribute's parents are earlier attributes that become one clique. Small attributes are cheap in many cliques,
    wide ones in few: eliminated first, a wide attribute is in one clique only. Of a functional dependency X -> Y the
    smaller side comes first for the same reason, whatever its direction. On adult this order is as good as one
    chosen after the marginals were measured, and the order of the columns costs a fourth more distance.

    >>> order_attributes([ModelAttribute(name="zip", size=900), ModelAttribute(name="sex", size=2)])
    ('sex', 'zip')
    """
    sources = {x for x, _ in functional}

    def weight(item: tuple[int, ModelAttribute]) -> tuple[int, bool, int]:
        position, attribute = item
        size = min(attribute.size, ORDERED_BINS) if attribute.ordered else attribute.size
        return size, attribute.name not in sources, position

    return tuple(attribute.name for _, attribute in sorted(enumerate(attributes), key=weight))
