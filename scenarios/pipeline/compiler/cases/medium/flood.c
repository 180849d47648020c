// Counts the islands of a map, and says how large each is.
int map[12][30];

int rows[360], columns[360];

int fill(int row, int column) {
  if (map[row][column] != 1) return 0;
  int size = 0, waiting = 1;
  map[row][column] = 2;
  rows[0] = row;
  columns[0] = column;
  while (waiting > 0) {
    waiting -= 1;
    size += 1;
    row = rows[waiting];
    column = columns[waiting];
    for (int way = 0; way < 4; way += 1) {
      int r = row + (way == 0) - (way == 1), c = column + (way == 2) - (way == 3);
      if (r < 0 || r > 11 || c < 0 || c > 29 || map[r][c] != 1) continue;
      map[r][c] = 2;
      rows[waiting] = r;
      columns[waiting] = c;
      waiting += 1;
    }
  }
  return size;
}

int main(void) {
  int seed = get_int();
  for (int row = 0; row < 12; row += 1)
    for (int column = 0; column < 30; column += 1) {
      seed = seed * 1103515245 + 12345;
      if ((seed >> 16 & 7) > 3) map[row][column] = 1;
    }
  for (int row = 0; row < 12; row += 1) {
    for (int column = 0; column < 30; column += 1)
      if (map[row][column]) put_char('o'); else put_char('.');
    put_char('\n');
  }
  int islands = 0, largest = 0;
  for (int row = 0; row < 12; row += 1)
    for (int column = 0; column < 30; column += 1) {
      int size = fill(row, column);
      if (!size) continue;
      islands += 1;
      if (size > largest) largest = size;
      put_int(size);
      put_char(' ');
    }
  put_char('\n');
  put_int(largest);
  put_char('\n');
  return islands;
}
