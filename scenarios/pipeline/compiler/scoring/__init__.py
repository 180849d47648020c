"""Scores of one stage's artifacts: tokens, syntax trees and executions."""
