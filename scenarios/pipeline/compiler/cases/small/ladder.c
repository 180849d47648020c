// Operators of every kind side by side: the table decides what belongs together.
int main(void) {
  int a = get_int(), b = 3, c = -2, d = 0x10;
  put_int(a + b * c - d / b % 4); put_char(' ');
  put_int((a + b) * (c - d) / b % 4); put_char(' ');
  put_int(a << 1 + 1); put_char(' ');
  put_int((a << 1) + 1); put_char(' ');
  put_int(a < b == (c < d)); put_char(' ');
  put_int(a & b == 3); put_char(' ');
  put_int((a & b) == 2); put_char(' ');
  put_int(a | b ^ d & 0x1f); put_char(' ');
  put_int(a ^ b | c & d); put_char(' ');
  put_int(!a == !b); put_char(' ');
  put_int(-a - -b); put_char(' ');
  put_int(~a & 0xFF); put_char(' ');
  put_int((a > b) > c); put_char(' ');
  put_int(a - b - c - d); put_char(' ');
  put_int(d / b / 2 * 3); put_char(' ');
  put_int(a || b && 0); put_char(' ');
  put_int((a || b) && 0); put_char(' ');
  put_int(1 + (a != 6) + (b >= 3) + (c <= -2) * 4); put_char('\n');
  a += b * 2; b -= a / 3; c *= c - 1; d /= 5; d %= 2;
  put_int(a); put_char(b + '0'); put_int(c); put_int(d); put_char('\n');
  return a ^ d;
}
