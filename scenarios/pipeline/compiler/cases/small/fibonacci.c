// The same numbers twice: by calling itself, and by adding up.
int slow(int n) {
  if (n < 2) return n;
  return slow(n - 1) + slow(n - 2);
}

int fast(int n) {
  int a = 0, b = 1;
  for (; n > 0; n -= 1) {
    int next = a + b;
    a = b;
    b = next;
  }
  return a;
}

int main(void) {
  int count = get_int();
  for (int n = 0; n < count; n += 1) {
    if (slow(n) != fast(n)) return 1;
    put_int(fast(n));
    put_char(' ');
  }
  put_char('\n');
  put_int(fast(46));
  put_char('\n');
  put_int(fast(60));
  put_char('\n');
  return 0;
}
