// Finds a pattern in a text without ever going back in the text.
int text[300], pattern[20], fallback[21];

int main(void) {
  int size = 0, length = 0;
  int c = get_char();
  for (; c != '\n'; c = get_char()) { pattern[size] = c; size += 1; }
  for (c = get_char(); c != -1; c = get_char()) { text[length] = c; length += 1; }

  int known = 0;
  for (int i = 1; i < size; i += 1) {
    while (known > 0 && pattern[i] != pattern[known]) known = fallback[known];
    if (pattern[i] == pattern[known]) known += 1;
    fallback[i + 1] = known;
  }
  for (int i = 0; i <= size; i += 1) { put_int(fallback[i]); put_char(' '); }
  put_char('\n');

  int matched = 0, found = 0, compared = 0;
  for (int i = 0; i < length; i += 1) {
    while (matched > 0 && (matched == size || text[i] != pattern[matched])) {
      matched = fallback[matched];
      compared += 1;
    }
    if (text[i] == pattern[matched]) matched += 1;
    if (matched == size) {
      put_int(i - size + 1);
      put_char(' ');
      found += 1;
    }
  }
  put_char('\n');
  put_int(compared);
  put_char('\n');
  return found;
}
