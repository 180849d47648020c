// Division, remainder and shifts of numbers with signs, and sums that are too large.
int values[8] = {7, -7, 1, -1, 2147483647, -2147483647, 65536, -3};

void show(int number) {
  put_int(number);
  put_char(' ');
}

int main(void) {
  int rows = get_int();
  for (int i = 0; i < rows; i += 1) {
    int v = values[i];
    show(v / 2); show(v % 2); show(v / -3); show(v % -3);
    show(v >> 1); show(v << 3); show(v * v); show(v + v);
    show(-v); show(~v); show(!v); show(- -v - -1);
    put_char('\n');
  }
  int least = -2147483647 - 1;
  show(least); show(least - 1); show(least / 2); show(least >> 31); show(0 - least);
  put_char('\n');
  return -1;
}
