// All orders of a few letters, each made of the one before.
int letters[6];

void show(const int v[], int n) {
  for (int i = 0; i < n; i += 1) put_char(v[i]);
  put_char(' ');
}

void swap(int v[], int a, int b) {
  int kept = v[a];
  v[a] = v[b];
  v[b] = kept;
}

int advance(int v[], int n) {
  int at = n - 2;
  while (at >= 0 && v[at] >= v[at + 1]) at -= 1;
  if (at < 0) return 0;
  int larger = n - 1;
  while (v[larger] <= v[at]) larger -= 1;
  swap(v, at, larger);
  for (int left = at + 1, right = n - 1; left < right; left += 1) {
    swap(v, left, right);
    right -= 1;
  }
  return 1;
}

int main(void) {
  int n = 0;
  for (int c = get_char(); c >= 'a'; c = get_char()) {
    letters[n] = c;
    n += 1;
  }
  int orders = 1;
  show(letters, n);
  while (advance(letters, n)) {
    orders += 1;
    show(letters, n);
    if (orders % 12 == 0) put_char('\n');
  }
  put_char('\n');
  return orders;
}
