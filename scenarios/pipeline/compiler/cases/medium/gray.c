// Gray codes: each word differs from the one before in one bit, and can be turned back.
void binary(int word, int width) {
  while (width > 0) {
    width -= 1;
    put_char('0' + (word >> width & 1));
  }
}

int back(int code) {
  int word = 0;
  for (; code; code = code >> 1) word = word ^ code;
  return word;
}

int main(void) {
  int words = get_int();
  int changes[6] = {0}, before = 0;
  for (int word = 0; word < words; word += 1) {
    int code = word ^ word >> 1;
    if (back(code) != word) return 1;
    if (word % 8 == 0) put_char('\n'); else put_char(' ');
    binary(code, 6);
    int changed = code ^ before;
    for (int bit = 0; bit < 6; bit += 1) if (changed & 1 << bit) changes[bit] += 1;
    before = code;
  }
  put_char('\n');
  int sum = 0;
  for (int bit = 0; bit < 6; bit += 1) { put_int(changes[bit]); put_char(' '); sum += changes[bit]; }
  put_char('\n');
  return sum;
}
