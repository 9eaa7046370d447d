"""Limits the effect of errors: guards of Qt's calls, the log, reports, settings, memory."""
