// Counts the letters of a text, large or small.
int counts[26];

int main(void) {
  int others = 0;
  int seen = get_char();
  while (seen != -1) {
    if (seen >= 'a' && seen <= 'z') counts[seen - 'a'] += 1;
    else if (seen >= 'A' && seen <= 'Z') counts[seen - 'A'] += 1;
    else others += 1;
    seen = get_char();
  }
  for (int i = 0; i < 26; i += 1) {
    if (counts[i] == 0) continue;
    put_char('a' + i);
    put_int(counts[i]);
    put_char(' ');
  }
  put_char('\n');
  return others;
}
