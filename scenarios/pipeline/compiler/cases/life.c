// The game of life on a small field without borders.
int field[8][8], after[8][8];

int neighbours(int row, int column) {
  int count = 0;
  for (int r = -1; r <= 1; r += 1)
    for (int c = -1; c <= 1; c += 1)
      if (r || c) count += field[row + r + 8 & 7][column + c + 8 & 7];
  return count;
}

int step(void) {
  int alive = 0;
  for (int r = 0; r < 8; r += 1)
    for (int c = 0; c < 8; c += 1) {
      int n = neighbours(r, c);
      after[r][c] = n == 3 || n == 2 && field[r][c];
      alive += after[r][c];
    }
  for (int r = 0; r < 8; r += 1)
    for (int c = 0; c < 8; c += 1) field[r][c] = after[r][c];
  return alive;
}

int main(void) {
  field[0][1] = 1; field[1][2] = 1;
  field[2][0] = 1; field[2][1] = 1; field[2][2] = 1;
  field[6][5] = 1; field[6][6] = 1; field[6][7] = 1;
  int alive = 0;
  for (int generation = 0; generation < 12; generation += 1) {
    alive = step();
    if (generation % 4 != 3) continue;
    for (int r = 0; r < 8; r += 1) {
      for (int c = 0; c < 8; c += 1) put_char('.' + field[r][c] * ('#' - '.'));
      put_char('\n');
    }
    put_int(alive);
    put_char('\n');
  }
  return alive;
}
