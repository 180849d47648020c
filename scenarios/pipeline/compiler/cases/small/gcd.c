// Greatest common divisors of pairs, until a pair of zeros.
int gcd(int a, int b) {
  while (b != 0) {
    int rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

int main(void) {
  int pairs = 0;
  while (1) {
    int a = get_int();
    int b = get_int();
    if (a == 0 && b == 0) break;
    put_int(gcd(a, b));
    put_char('\n');
    pairs += 1;
  }
  return pairs;
}
