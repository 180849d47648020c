// Moves the letters of a text along the alphabet.
int moved(int letter, int first, int by) {
  return first + (letter - first + by + 26) % 26;
}

int main(void) {
  int by = get_int();
  int letter = get_char();
  while (1) {
    letter = get_char();
    if (letter < 0) break;
    if (letter >= 'a' && letter <= 'z') put_char(moved(letter, 'a', by));
    else if (letter >= 'A' && letter <= 'Z') put_char(moved(letter, 'A', by));
    else put_char(letter);
  }
  return by + 256;
}
