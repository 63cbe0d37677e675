"""How many pairs of rows would a value break? One protocol, six ways to count, all exact."""

from kamino.sampling.partners.block import DEAD, Block
from kamino.sampling.partners.counting import Partners, is_hashed, make_partners
from kamino.sampling.partners.violation_rates import rates_of

__all__ = ["DEAD", "Block", "Partners", "is_hashed", "make_partners", "rates_of"]
