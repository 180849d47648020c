"""The program of T0: the smallest one that shows that all the tools work together."""

EXIT = 91
"""Other than that of the program in the starters' check, so that it cannot be known."""
PROGRAM = 'void _start(void) {{ __asm__ volatile("li a0, {}; li a7, 93; ecall"); }}\n'
HELLO = PROGRAM.format(EXIT).encode()
ASSEMBLY = b"\t.globl main\nmain:\n\tli a0, 91\n\tret\n"
