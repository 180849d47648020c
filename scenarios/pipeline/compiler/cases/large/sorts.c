// Four ways to sort the same numbers; all must come to the same order.
int given[700], v[700], heap_size;
int work;

void shell(int n) {
  for (int gap = n / 2; gap > 0; gap /= 2)
    for (int i = gap; i < n; i += 1) {
      int value = v[i], k = i;
      for (; k >= gap && v[k - gap] > value; k -= gap) { v[k] = v[k - gap]; work += 1; }
      v[k] = value;
    }
}

void sink(int at, int n) {
  int value = v[at];
  while (2 * at + 1 < n) {
    int child = 2 * at + 1;
    if (child + 1 < n && v[child + 1] > v[child]) child += 1;
    if (v[child] <= value) break;
    v[at] = v[child];
    at = child;
    work += 1;
  }
  v[at] = value;
}

void heap(int n) {
  for (int at = n / 2 - 1; at >= 0; at -= 1) sink(at, n);
  for (int end = n - 1; end > 0; end -= 1) {
    int kept = v[0];
    v[0] = v[end];
    v[end] = kept;
    sink(0, end);
  }
}

void quick(int low, int high) {
  if (low >= high) return;
  int pivot = v[(low + high) / 2], i = low, k = high;
  while (i <= k) {
    while (v[i] < pivot) i += 1;
    while (v[k] > pivot) k -= 1;
    if (i <= k) {
      int kept = v[i];
      v[i] = v[k];
      v[k] = kept;
      work += 1;
      i += 1;
      k -= 1;
    }
  }
  quick(low, k);
  quick(i, high);
}

void digits(int n) {
  int other[700];
  for (int shift = 0; shift < 16; shift += 4) {
    int counts[17] = {0};
    for (int i = 0; i < n; i += 1) counts[(v[i] >> shift & 15) + 1] += 1;
    for (int i = 1; i < 17; i += 1) counts[i] += counts[i - 1];
    for (int i = 0; i < n; i += 1) {
      int digit = v[i] >> shift & 15;
      other[counts[digit]] = v[i];
      counts[digit] += 1;
      work += 1;
    }
    for (int i = 0; i < n; i += 1) v[i] = other[i];
  }
}

int finish(int n, int letter) {
  int sum = 0, before = -1;
  for (int i = 0; i < n; i += 1) {
    if (before > v[i]) return -1;
    before = v[i];
    sum = sum * 17 + before;
    v[i] = given[i];
  }
  put_char(letter);
  put_char(' ');
  put_int(work);
  put_char('\n');
  work = 0;
  return sum;
}

int main(void) {
  int n = 700, seed = get_int();
  for (int i = 0; i < n; i += 1) {
    seed = seed * 1103515245 + 12345;
    given[i] = seed >> 16 & 0xffff;
    v[i] = given[i];
  }
  shell(n);
  int expected = finish(n, 's');
  heap(n);
  int wrong = finish(n, 'h') != expected;
  quick(0, n - 1);
  wrong += finish(n, 'q') != expected;
  digits(n);
  wrong += finish(n, 'd') != expected;
  put_int(expected);
  put_char('\n');
  return wrong;
}
