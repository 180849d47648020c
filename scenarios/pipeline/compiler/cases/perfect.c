// Numbers that are the sum of what divides them; and those of which the sum is one more or less.
int divisors(int n) {
  int sum = 0;
  for (int d = 1; d <= n / 2; d += 1)
    if (n % d == 0)
      sum += d;
  return sum;
}

int main(void) {
  int near = 0;
  for (int n = 2; n <= 130; n += 1) {
    int difference = divisors(n) - n;
    if (difference == 0) {
      put_int(n);
      put_char('!');
    } else if (difference == 1 || difference == -1) {
      put_int(n);
      put_char(' ');
      near += 1;
    }
  }
  put_char('\n');
  return near;
}
