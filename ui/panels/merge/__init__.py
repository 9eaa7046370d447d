"""Partial results of a row's keys, merged by hand in any order."""
