// Merge sort, from the bottom to the top by recursion.
int data[256], spare[256];
int compared;

void merge(int v[], int low, int middle, int high) {
  int left = low, right = middle, at = low;
  while (left < middle && right < high) {
    compared += 1;
    if (v[left] <= v[right]) {
      spare[at] = v[left];
      left += 1;
    } else {
      spare[at] = v[right];
      right += 1;
    }
    at += 1;
  }
  for (; left < middle; left += 1) { spare[at] = v[left]; at += 1; }
  for (; right < high; right += 1) { spare[at] = v[right]; at += 1; }
  for (at = low; at < high; at += 1) v[at] = spare[at];
}

void sort(int v[], int low, int high) {
  if (high - low < 2) return;
  int middle = (low + high) / 2;
  sort(v, low, middle);
  sort(v, middle, high);
  merge(v, low, middle, high);
}

int main(void) {
  int seed = get_int();
  for (int i = 0; i < 256; i += 1) {
    seed = (seed * 109 + 853) % 4096;
    data[i] = seed - 2048;
  }
  sort(data, 0, 256);
  int disorder = 0;
  for (int i = 1; i < 256; i += 1) if (data[i - 1] > data[i]) disorder += 1;
  put_int(data[0]); put_char(' ');
  put_int(data[127]); put_char(' ');
  put_int(data[255]); put_char('\n');
  put_int(compared); put_char('\n');
  return disorder;
}
