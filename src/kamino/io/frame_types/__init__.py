"""What kind of frame a table came as, so that what is drawn comes back as the same kind, with the same types.

Only declared types are looked at: what a column can hold, never what it holds.
"""

from kamino.io.frame_types.kinds import FrameKind, frame_from, kind_of

__all__ = ["FrameKind", "frame_from", "kind_of"]
