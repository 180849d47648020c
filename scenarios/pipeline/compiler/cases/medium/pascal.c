// Pascal's triangle, and a picture of what is odd in it.
int line[40];

int main(void) {
  int rows = get_int();
  int total = 0;
  for (int row = 0; row < rows; row += 1) {
    line[row] = 1;
    for (int i = row - 1; i > 0; i -= 1) line[i] += line[i - 1];
    if (row < 10) {
      for (int i = 0; i <= row; i += 1) { put_int(line[i]); put_char(' '); }
      put_char('\n');
    }
    for (int i = 0; i <= row; i += 1) {
      if (line[i] % 2) { put_char('#'); total += 1; }
      else put_char('.');
    }
    put_char('\n');
  }
  put_int(total);
  put_char('\n');
  return line[rows / 2] % 256;
}
