// Numbers written in other bases.
void show(int number, int base) {
  if (number >= base) show(number / base, base);
  int digit = number % base;
  if (digit < 10) put_char('0' + digit);
  else put_char('A' + digit - 10);
}

int main(void) {
  int limit = get_int();
  const int bases[5] = {2, 3, 8, 16, 36};
  for (int number = 0; number < limit; number = number * 3 + 5) {
    for (int i = 0; i < 5; i += 1) {
      show(number, bases[i]);
      if (i < 4) put_char(' ');
    }
    put_char('\n');
  }
  return 0;
}
