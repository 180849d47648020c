// Puts numbers in order one after the other, and shows the table now and then.
int table[64];

void show(const int v[], int n) {
  for (int i = 0; i < n; i += 1) {
    put_int(v[i]);
    if (i + 1 < n) put_char(' ');
  }
  put_char('\n');
}

int put(int v[], int n, int value) {
  int at = n;
  while (at > 0 && v[at - 1] > value) {
    v[at] = v[at - 1];
    at -= 1;
  }
  v[at] = value;
  return n - at;
}

int main(void) {
  int count = get_int(), moved = 0;
  for (int n = 0; n < count; n += 1) {
    moved += put(table, n, get_int());
    if (n % 8 == 7) show(table, n + 1);
  }
  show(table, count);
  put_int(moved);
  put_char('\n');
  return moved % 256;
}
