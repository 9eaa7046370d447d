"""Exercises of lessons: their files, numbers from a seed, answers by the program, mistakes."""
