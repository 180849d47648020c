// In how many ways queens can stand on a small board without seeing one another.
int columns[10], rising[20], falling[20], where[10];
int found;

void show(int n) {
  for (int row = 0; row < n; row += 1) {
    put_int(where[row] + 1);
    put_char(' ');
  }
  put_char('\n');
}

void place(int row, int n) {
  if (row == n) {
    found += 1;
    if (found <= 3) show(n);
    return;
  }
  for (int column = 0; column < n; column += 1) {
    if (columns[column] || rising[row + column] || falling[row - column + n]) continue;
    columns[column] = 1; rising[row + column] = 1; falling[row - column + n] = 1;
    where[row] = column;
    place(row + 1, n);
    columns[column] = 0; rising[row + column] = 0; falling[row - column + n] = 0;
  }
}

int main(void) {
  int largest = get_int();
  for (int n = 1; n <= largest; n += 1) {
    found = 0;
    place(0, n);
    put_int(found);
    put_char('\n');
  }
  return found;
}
