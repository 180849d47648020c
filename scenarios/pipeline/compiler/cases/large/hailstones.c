// The longest way down to 1 of all numbers below a limit, with what is known remembered.
int known[3000];

int length(int n, int limit) {
  int steps = 0, m = n;
  while (m != 1) {
    if (m < limit && known[m]) {
      steps += known[m];
      break;
    }
    if (m % 2 == 0) m /= 2;
    else m = 3 * m + 1;
    steps += 1;
  }
  if (n < limit) known[n] = steps;
  return steps;
}

int unaided(int n) {
  int steps = 0;
  for (; n != 1; steps += 1)
    if (n % 2 == 0) n /= 2;
    else n = 3 * n + 1;
  return steps;
}

int main(void) {
  int most = 0, who = 0, sum = 0, limit = get_int();
  for (int n = 1; n < limit; n += 1) {
    int steps = length(n, limit);
    sum += steps;
    if (steps > most) {
      most = steps;
      who = n;
      put_int(n); put_char(':'); put_int(steps); put_char('\n');
    }
  }
  int again = 0;
  for (int n = 1; n < 1000; n += 1) again += unaided(n);
  put_int(sum); put_char('\n');
  put_int(again); put_char('\n');
  return who % 256;
}
