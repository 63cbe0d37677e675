"""Rules on terms that leave each row a range of values: solved for the value that is drawn, exactly."""
