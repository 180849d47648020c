// Whether a grid of numbers keeps the rules, and which ones it breaks.
int grid[9][9];

int unique(const int nine[]) {
  int seen = 0;
  for (int i = 0; i < 9; i += 1) {
    if (nine[i] == 0) continue;
    if (seen >> nine[i] & 1) return 0;
    seen = seen | 1 << nine[i];
  }
  return 1;
}

int main(void) {
  int wrong = 0;
  for (int row = 0; row < 9; row += 1)
    for (int column = 0; column < 9; column += 1) {
      int c = get_char();
      while (c != '.' && (c < '1' || c > '9')) c = get_char();
      if (c != '.') grid[row][column] = c - '0';
    }
  for (int i = 0; i < 9; i += 1) {
    int column[9], box[9];
    for (int k = 0; k < 9; k += 1) {
      column[k] = grid[k][i];
      box[k] = grid[i / 3 * 3 + k / 3][i % 3 * 3 + k % 3];
    }
    if (!unique(grid[i])) { put_char('r'); put_int(i + 1); put_char(' '); wrong += 1; }
    if (!unique(column)) { put_char('c'); put_int(i + 1); put_char(' '); wrong += 1; }
    if (!unique(box)) { put_char('b'); put_int(i + 1); put_char(' '); wrong += 1; }
  }
  put_char('\n');
  return wrong;
}
