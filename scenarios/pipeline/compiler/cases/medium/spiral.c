// Fills a square from its border to its middle, then reads it along the diagonals.
int square[9][9];

int main(void) {
  int n = get_int(), row = 0, column = -1, value = 0;
  int across = 0, down = 1;
  for (int length = n; length > 0; length -= 1) {
    for (int turn = 0; turn < 2; turn += 1) {
      if (turn == 1 && length == n) continue;
      int dr[4] = {0, 1, 0, -1}, dc[4] = {1, 0, -1, 0};
      for (int i = 0; i < length; i += 1) {
        row += dr[across];
        column += dc[across];
        value += down;
        square[row][column] = value;
      }
      across = (across + 1) % 4;
    }
  }
  for (int i = 0; i < n; i += 1) {
    for (int k = 0; k < n; k += 1) {
      if (square[i][k] < 10) put_char(' ');
      put_int(square[i][k]);
      put_char(' ');
    }
    put_char('\n');
  }
  int sum = 0;
  for (int diagonal = 0; diagonal < 2 * n - 1; diagonal += 2)
    for (int i = 0; i < n; i += 1) {
      int k = diagonal - i;
      if (k < 0 || k >= n) continue;
      sum += square[i][k] * (i - k);
    }
  put_int(sum);
  put_char('\n');
  return value;
}
