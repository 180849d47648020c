// The primes below a limit, ten to a line, and how many there are.
int composite[2000];

int main(void) {
  const int limit = get_int();
  for (int i = 2; i * i < limit; i += 1) {
    if (composite[i]) continue;
    for (int k = i * i; k < limit; k += i) composite[k] = 1;
  }
  int found = 0;
  for (int i = 2; i < limit; i += 1) {
    if (composite[i]) continue;
    put_int(i);
    found += 1;
    if (found % 10 == 0) put_char('\n'); else put_char(' ');
  }
  put_char('\n');
  put_int(found);
  put_char('\n');
  return found % 256;
}
