// Looks numbers up in a table that is in order, by halving.
int table[16] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
int looks = 0;

int place(int from[], int low, int high, int wanted) {
  while (low <= high) {
    int middle = low + (high - low) / 2;
    looks += 1;
    if (from[middle] == wanted) return middle;
    if (from[middle] < wanted) low = middle + 1;
    else high = middle - 1;
  }
  return -1 - low;
}

int main(void) {
  int limit = get_int();
  for (int wanted = 0; wanted < limit; wanted += 4) {
    put_int(place(table, 0, 15, wanted));
    put_char(' ');
  }
  put_int(place(table, 0, 15, 47));
  put_char('\n');
  return looks;
}
