// Digits of numbers backwards, their sum, and the root that is left of summing again and again.
int backwards(int n) {
  int turned = 0;
  while (n > 0) {
    turned = turned * 10 + n % 10;
    n /= 10;
  }
  return turned;
}

int sum(int n) {
  if (n == 0) return 0;
  return n % 10 + sum(n / 10);
}

int root(int n) {
  while (n > 9) n = sum(n);
  return n;
}

int main(void) {
  const int numbers[6] = {0, 7, 1200, 98765, 1000001, get_int()};
  for (int i = 0; i < 6; i += 1) {
    put_int(backwards(numbers[i])); put_char(' ');
    put_int(sum(numbers[i])); put_char(' ');
    put_int(root(numbers[i])); put_char('\n');
  }
  return root(98765);
}
