// Counts lines, words and letters, and finds the longest word.
int longest[40], word[40];

int main(void) {
  int lines = 0, words = 0, letters = 0, length = 0, most = 0;
  int lengths[20] = {0};
  while (1) {
    int c = get_char();
    int inside = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z';
    if (inside) {
      word[length] = c;
      length += 1;
      letters += 1;
    } else if (length > 0) {
      words += 1;
      lengths[length] += 1;
      if (length > most) {
        most = length;
        for (int i = 0; i < most; i += 1) longest[i] = word[i];
      }
      length = 0;
    }
    if (c == '\n') lines += 1;
    if (c < 0) break;
  }
  put_int(lines); put_char(' ');
  put_int(words); put_char(' ');
  put_int(letters); put_char('\n');
  for (int i = 0; i < most; i += 1) put_char(longest[i]);
  put_char('\n');
  for (int i = 1; i <= most; i += 1) {
    put_int(i); put_char(' ');
    for (int k = 0; k < lengths[i]; k += 1) put_char('=');
    put_char('\n');
  }
  return words;
}
