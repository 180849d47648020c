// What && and || leave out: every call leaves a letter.
int said(int letter, int truth) {
  put_char(letter);
  return truth;
}

int main(void) {
  int truths = 0, rounds = get_int();
  for (int i = 0; i < rounds; i += 1) {
    int a = i & 1, b = i >> 1;
    if (said('a', a) && said('b', b)) truths += 1;
    if (said('c', a) || said('d', b)) truths += 10;
    if (!said('e', a) || said('f', b) && said('g', !b)) truths += 100;
    put_char(' ');
    int both = said('h', 5) && said('i', -5);
    truths += both + (said('j', 0) || said('k', 7));
    put_char('\n');
  }
  while (said('.', truths % 3) && truths > 440) truths -= 1;
  put_char('\n');
  put_int(truths);
  put_char('\n');
  return truths % 256;
}
