// Powers modulo a number, by squaring.
int power(int base, int exponent, int modulus) {
  int result = 1;
  base %= modulus;
  while (exponent) {
    if (exponent % 2) result = result * base % modulus;
    base = base * base % modulus;
    exponent /= 2;
  }
  return result;
}

int main(void) {
  int count = get_int();
  while (count > 0) {
    int base = get_int();
    int exponent = get_int();
    int modulus = get_int();
    put_int(power(base, exponent, modulus));
    put_char('\n');
    count -= 1;
  }
  return power(2, 100, 101);
}
