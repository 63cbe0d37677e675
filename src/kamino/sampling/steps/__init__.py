"""The steps of a plan, one file each: every one draws a whole column."""
