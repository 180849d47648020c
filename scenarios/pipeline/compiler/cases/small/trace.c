// Adds up the diagonals and the border of a square.
int square[5][5] = {{1, 2, 3, 4, 5}, {6, 7}, {8, 9, 10}, {0}, {11, 12, 13, 14, 15}};

int main(void) {
  int down = 0, up = 0, border = 0, side = get_int();
  for (int i = 0; i < side; i += 1) {
    down += square[i][i];
    up += square[4 - i][i];
    for (int k = 0; k < 5; k += 1)
      if (i == 0 || i == 4 || k == 0 || k == 4) border += square[i][k];
  }
  put_int(down); put_char('\n');
  put_int(up); put_char('\n');
  put_int(border); put_char('\n');
  return down * up % 256;
}
