"""One attribute at a time: its noisy histogram, its bins, what recurs inside them."""
