"""A table and its certificate, judged by somebody who has neither the private table nor the run."""
