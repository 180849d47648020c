// A function that grows faster than anything that only loops.
int calls;

int ackermann(int m, int n) {
  calls += 1;
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}

int main(void) {
  int rows = get_int();
  for (int m = 0; m <= rows; m += 1) {
    for (int n = 0; n <= 3; n += 1) {
      put_int(ackermann(m, n));
      put_char(' ');
    }
    put_char('\n');
  }
  put_int(calls);
  put_char('\n');
  return calls & 127;
}
