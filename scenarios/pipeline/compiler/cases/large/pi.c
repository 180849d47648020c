// Digits of pi, one after the other, from nothing but remainders.
int rest[430];

int main(void) {
  int digits = get_int(), length = 401;
  for (int i = 0; i < length; i += 1) rest[i] = 2;
  int nines = 0, waiting = 0, printed = 0;
  for (int n = 0; n <= digits; n += 1) {
    int carry = 0;
    for (int i = length - 1; i > 0; i -= 1) {
      int value = rest[i] * 10 + carry;
      int by = 2 * i + 1;
      rest[i] = value % by;
      carry = value / by * i;
    }
    int value = rest[0] * 10 + carry;
    rest[0] = value % 10;
    int digit = value / 10;
    if (digit == 9) {
      nines += 1;
      continue;
    }
    int over = digit == 10;
    if (n > 0) {
      put_int(waiting + over);
      printed += 1;
      if (printed == 1) put_char('.');
    }
    for (; nines > 0; nines -= 1) {
      put_int(9 * !over);
      printed += 1;
    }
    if (over) waiting = 0; else waiting = digit;
  }
  put_char('\n');
  return printed;
}
