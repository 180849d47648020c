// Quicksort; the numbers that lie between two limits are summed afterwards.
int v[300];
int deepest;

void swap(int a, int b) {
  int kept = v[a];
  v[a] = v[b];
  v[b] = kept;
}

int split(int low, int high) {
  int pivot = v[(low + high) / 2], i = low, k = high;
  while (1) {
    while (v[i] < pivot) i += 1;
    while (v[k] > pivot) k -= 1;
    if (i >= k) return k;
    swap(i, k);
    i += 1;
    k -= 1;
  }
  return 0;
}

void sort(int low, int high, int depth) {
  if (depth > deepest) deepest = depth;
  while (low < high) {
    int cut = split(low, high);
    sort(low, cut, depth + 1);
    low = cut + 1;
  }
}

int main(void) {
  int factor = get_int();
  for (int i = 0; i < 300; i += 1) v[i] = i * i * factor % 997 - 400;
  sort(0, 299, 0);
  int sum = 0, ordered = 1;
  for (int i = 0; i < 300; i += 1) {
    if (i > 0 && v[i - 1] > v[i]) ordered = 0;
    if (v[i] < -100 || v[i] > 100) continue;
    sum += v[i] * i;
  }
  put_int(ordered); put_char(' ');
  put_int(deepest); put_char(' ');
  put_int(sum); put_char('\n');
  return v[299] % 256;
}
