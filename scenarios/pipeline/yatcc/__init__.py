"""Grading of the compiler labs in a YatCC checkout that the user configured; nothing is copied
here.
"""
