"""The first page: three ways in and the lessons by part."""
