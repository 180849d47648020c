// Which lines read the same from both ends, if only letters count.
int text[200];

int small(int c) {
  if (c >= 'A' && c <= 'Z') return c + ('a' - 'A');
  return c;
}

int same(int from[], int length) {
  int left = 0, right = length - 1;
  while (left < right) {
    if (from[left] != from[right]) return 0;
    left += 1;
    right -= 1;
  }
  return 1;
}

int main(void) {
  int length = 0, found = 0;
  for (int c = get_char(); c != -1; c = get_char()) {
    if (c == '\n') {
      int answer = same(text, length);
      if (answer) put_char('y'); else put_char('n');
      found += answer;
      length = 0;
    } else {
      c = small(c);
      if (c >= 'a' && c <= 'z') {
        text[length] = c;
        length += 1;
      }
    }
  }
  put_char('\n');
  return found;
}
