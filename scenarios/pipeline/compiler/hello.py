"""T0's program: a small one that shows that all tools work together, with the runtime."""

EXIT = 91
"""Differs from the exit code in the starters' check, so that it cannot be known in advance."""
PROGRAM = """#include "runtime.h"
int main(void) {{
    put_int({0});
    put_char('\\n');
    return {0};
}}
"""
HELLO = PROGRAM.format(EXIT).encode()
ASSEMBLY = b"\t.globl main\nmain:\n\tli a0, 91\n\tret\n"
