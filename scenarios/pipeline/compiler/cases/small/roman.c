// Roman numerals.
const int WORTH[13] = {1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1};
const int FIRST[13] = {'M', 'C', 'D', 'C', 'C', 'X', 'L', 'X', 'X', 'I', 'V', 'I', 'I'};
const int SECOND[13] = {0, 'M', 0, 'D', 0, 'C', 0, 'L', 0, 'X', 0, 'V', 0};

int write(int number, const int worth[]) {
  int signs = 0;
  for (int i = 0; i < 13; i += 1)
    for (; number >= worth[i]; number -= worth[i]) {
      put_char(FIRST[i]);
      signs += 1;
      if (SECOND[i] == 0) continue;
      put_char(SECOND[i]);
      signs += 1;
    }
  put_char('\n');
  return signs;
}

int main(void) {
  int signs = 0;
  while (1) {
    int number = get_int();
    if (number == 0) return signs;
    signs += write(number, WORTH);
  }
  return 255;
}
