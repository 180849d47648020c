// Squeezes a text by pointing back to what came before, and opens it again.
int text[1200], packed[1200], opened[1200];

int main(void) {
  int length = 0;
  int c = get_char();
  while (c != -1 && length < 1200) {
    text[length] = c;
    length += 1;
    c = get_char();
  }
  int size = 0, at = 0, pointers = 0;
  while (at < length) {
    int best = 0, where = 0;
    int start = at - 255;
    if (start < 0) start = 0;
    for (int from = start; from < at; from += 1) {
      int same = 0;
      while (same < 60 && at + same < length && text[from + same] == text[at + same]) same += 1;
      if (same > best) { best = same; where = at - from; }
    }
    if (best > 2) {
      packed[size] = 256 + best;
      packed[size + 1] = where;
      size += 2;
      at += best;
      pointers += 1;
    } else {
      packed[size] = text[at];
      size += 1;
      at += 1;
    }
  }
  int end = 0;
  for (int i = 0; i < size; i += 1) {
    if (packed[i] < 256) {
      opened[end] = packed[i];
      end += 1;
      continue;
    }
    int back = packed[i + 1];
    for (int count = packed[i] - 256; count > 0; count -= 1) {
      opened[end] = opened[end - back];
      end += 1;
    }
    i += 1;
  }
  int wrong = end != length;
  for (int i = 0; i < length; i += 1) if (opened[i] != text[i]) wrong += 1;
  put_int(length); put_char(' ');
  put_int(size); put_char(' ');
  put_int(pointers); put_char('\n');
  for (int i = 0; i < size; i += 1) {
    if (packed[i] > 255) {
      put_char('<'); put_int(packed[i + 1]); put_char(','); put_int(packed[i] - 256); put_char('>');
      i += 1;
    } else {
      put_char(packed[i]);
    }
  }
  return wrong;
}
