"""T0's program: the smallest one that shows that all tools work together."""

EXIT = 91
"""Differs from the exit code in the starters' check, so that it cannot be known in advance."""
PROGRAM = 'void _start(void) {{ __asm__ volatile("li a0, {}; li a7, 93; ecall"); }}\n'
HELLO = PROGRAM.format(EXIT).encode()
ASSEMBLY = b"\t.globl main\nmain:\n\tli a0, 91\n\tret\n"
