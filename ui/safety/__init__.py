"""What keeps a fault from spreading: guards of Qt's calls, the log, reports, settings, memory."""
