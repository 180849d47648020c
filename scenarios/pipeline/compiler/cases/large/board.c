// All ways to put eight queens on a board, counted with bits instead of tables.
int solutions;
int tried;
int first[8];
int full;

void place(int row, int columns, int rising, int falling, int where) {
  if (row == 8) {
    if (solutions < 4) {
      for (int i = 0; i < 8; i += 1) put_int((where >> 3 * i & 7) + 1);
      put_char('\n');
    }
    solutions += 1;
    first[where & 7] += 1;
    return;
  }
  int free = full & ~(columns | rising | falling);
  for (int column = 0; column < 8; column += 1) {
    int bit = 1 << column;
    if (!(free & bit)) continue;
    tried += 1;
    place(row + 1, columns | bit, (rising | bit) << 1, (falling | bit) >> 1, where | column << 3 * row);
  }
}

int main(void) {
  full = get_int();
  place(0, 0, 0, 0, 0);
  put_int(solutions); put_char('\n');
  put_int(tried); put_char('\n');
  for (int i = 0; i < 8; i += 1) { put_int(first[i]); put_char(' '); }
  put_char('\n');
  return solutions;
}
