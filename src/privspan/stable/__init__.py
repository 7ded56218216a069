"""Stable leverage: levels, certificate, plan and release, on records and on groups of records."""
