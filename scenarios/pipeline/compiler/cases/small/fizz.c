// Counts to a number; threes, fives and sevens get a letter instead.
int main(void) {
  int last = get_int();
  for (int i = 1; i <= last; i += 1) {
    int said = 0;
    if (i % 3 == 0) { put_char('F'); said = 1; }
    if (i % 5 == 0) { put_char('B'); said = 1; }
    if (i % 7 == 0) { put_char('W'); said = 1; }
    if (!said) put_int(i);
    put_char(' ');
  }
  put_char('\n');
  return last;
}
