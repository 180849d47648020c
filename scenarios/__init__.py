"""What is run and how it is judged in the end: worlds, and one to practise on."""
