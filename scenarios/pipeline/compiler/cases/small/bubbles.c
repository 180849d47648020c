// Sorts a few numbers by swapping neighbours, and counts the swaps.
int sort(int v[], int n) {
  int swaps = 0, busy = 1;
  while (busy) {
    busy = 0;
    for (int i = 1; i < n; i += 1) {
      if (v[i - 1] > v[i]) {
        int kept = v[i];
        v[i] = v[i - 1];
        v[i - 1] = kept;
        swaps += 1;
        busy = 1;
      }
    }
  }
  return swaps;
}

int main(void) {
  int numbers[12] = {9, -3, 14, 0, 0, 7, 22, get_int(), 5, 3, 3, 1};
  int swaps = sort(numbers, 12);
  for (int i = 0; i < 12; i += 1) { put_int(numbers[i]); put_char(' '); }
  put_char('\n');
  put_int(swaps);
  put_char('\n');
  return sort(numbers, 12);
}
