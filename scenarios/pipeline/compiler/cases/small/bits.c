// Bits: how many are set, which is the highest, and the word turned round.
int set(int word) {
  int count = 0;
  while (word != 0) {
    word = word & (word - 1);
    count += 1;
  }
  return count;
}

int highest(int word) {
  int place = -1;
  for (int i = 0; i < 32; i += 1) {
    if (word >> i & 1) place = i;
  }
  return place;
}

int turned(int word) {
  int result = 0;
  for (int i = 0; i < 32; i += 1) result = result << 1 | (word >> i & 1);
  return result;
}

int main(void) {
  int words[5] = {0, 1, 0x55, -1, get_int()};
  for (int i = 0; i < 5; i += 1) {
    int word = words[i];
    put_int(set(word)); put_char(' ');
    put_int(highest(word)); put_char(' ');
    put_int(turned(word)); put_char(' ');
    put_int(~word ^ 0xFF); put_char('\n');
  }
  return set(0x7fffffff);
}
