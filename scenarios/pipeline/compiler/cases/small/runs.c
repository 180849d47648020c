// Writes how often each letter follows itself.
int main(void) {
  int before = get_char(), count = 1;
  while (before != -1) {
    int c = get_char();
    if (c == before) {
      count += 1;
      continue;
    }
    if (before == '\n') {
      put_char('\n');
    } else {
      if (count > 1) put_int(count);
      put_char(before);
    }
    before = c;
    count = 1;
  }
  return 0;
}
