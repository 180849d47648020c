// A large sieve: how many primes, how many twins, and the widest gap.
int composite[40000];

int main(void) {
  int limit = get_int();
  for (int i = 2; i * i < limit; i += 1) {
    if (composite[i]) continue;
    for (int k = i * i; k < limit; k += i) composite[k] = 1;
  }
  int found = 0, twins = 0, last = 2, widest = 0, after = 0;
  for (int i = 2; i < limit; i += 1) {
    if (composite[i]) continue;
    found += 1;
    if (i - last == 2) twins += 1;
    if (i - last > widest) { widest = i - last; after = last; }
    last = i;
  }
  put_int(found); put_char('\n');
  put_int(twins); put_char('\n');
  put_int(widest); put_char('@'); put_int(after); put_char('\n');
  put_int(last); put_char('\n');
  return found & 255;
}
