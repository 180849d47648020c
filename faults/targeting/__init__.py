"""Targeting: selectors, triggers and sites decide which exchange a fault is injected into."""
