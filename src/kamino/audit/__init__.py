"""Tests of a run's promise that its owner can repeat: replay, prices, games, and faults planted to test the tests."""
