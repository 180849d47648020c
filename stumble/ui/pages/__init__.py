"""The pages: one module each, which reads what an address asks for and renders it."""
