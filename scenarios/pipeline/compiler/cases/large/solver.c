// Solves a sudoku by trying, always where the fewest numbers are left.
int grid[81], rows[9], columns[9], boxes[9];
int tries;

int box(int cell) { return cell / 27 * 3 + cell % 9 / 3; }

void flip(int cell, int bit) {
  rows[cell / 9] = rows[cell / 9] ^ bit;
  columns[cell % 9] = columns[cell % 9] ^ bit;
  boxes[box(cell)] = boxes[box(cell)] ^ bit;
}

int open(int cell) {
  return 0x3FE & ~(rows[cell / 9] | columns[cell % 9] | boxes[box(cell)]);
}

int solve(void) {
  int best = -1, fewest = 10;
  for (int cell = 0; cell < 81; cell += 1) {
    if (grid[cell]) continue;
    int left = open(cell), count = 0;
    for (; left; left = left & left - 1) count += 1;
    if (count < fewest) {
      fewest = count;
      best = cell;
    }
    if (count < 2) break;
  }
  if (best < 0) return 1;
  int left = open(best);
  for (int number = 1; number <= 9; number += 1) {
    int bit = 1 << number;
    if (!(left & bit)) continue;
    tries += 1;
    grid[best] = number;
    flip(best, bit);
    if (solve()) return 1;
    flip(best, bit);
    grid[best] = 0;
  }
  return 0;
}

int main(void) {
  for (int cell = 0; cell < 81; cell += 1) {
    int c = get_char();
    while (c <= ' ') c = get_char();
    if (c == '.') continue;
    grid[cell] = c - '0';
    flip(cell, 1 << c - '0');
  }
  int solved = solve();
  for (int cell = 0; cell < 81; cell += 1) {
    put_int(grid[cell]);
    if (cell % 9 == 8) put_char('\n');
  }
  put_int(tries);
  put_char('\n');
  return !solved;
}
