// A heap as a queue in which the smallest comes first.
int heap[128];
int size;

void push(int value) {
  int at = size;
  size += 1;
  while (at > 0) {
    int above = (at - 1) / 2;
    if (heap[above] <= value) break;
    heap[at] = heap[above];
    at = above;
  }
  heap[at] = value;
}

int pop(void) {
  int top = heap[0];
  size -= 1;
  int value = heap[size], at = 0;
  while (2 * at + 1 < size) {
    int below = 2 * at + 1;
    if (below + 1 < size && heap[below + 1] < heap[below]) below += 1;
    if (heap[below] >= value) break;
    heap[at] = heap[below];
    at = below;
  }
  heap[at] = value;
  return top;
}

int main(void) {
  int rounds = get_int();
  int checksum = 0;
  for (int round = 0; round < rounds; round += 1) {
    for (int i = 0; i < 10; i += 1) push((round * 37 + i * 53) % 101);
    for (int i = 0; i < 6; i += 1) {
      int value = pop();
      checksum = checksum * 7 + value;
      put_int(value);
      put_char(' ');
    }
    put_char('\n');
  }
  put_int(size);
  put_char('\n');
  while (size) checksum = checksum * 7 + pop();
  put_int(checksum);
  put_char('\n');
  return heap[0];
}
