"""Recordings and stores that tests build, read independently or simulate."""
