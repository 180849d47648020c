// How many steps numbers take to come down to 1, halving and tripling.
int steps(int n) {
  int taken = 0;
  while (n != 1) {
    if (n & 1) n = 3 * n + 1;
    else n = n >> 1;
    taken += 1;
  }
  return taken;
}

int main(void) {
  int most = 0, who = 0, last = get_int();
  for (int n = 1; n <= last; n += 1) {
    int taken = steps(n);
    put_int(taken);
    if (n % 10 == 0) put_char('\n'); else put_char(' ');
    if (taken > most) { most = taken; who = n; }
  }
  put_int(who);
  put_char('\n');
  return most;
}
