// A table with open addressing: numbers are put in, looked up, taken out.
int keys[1024], values[1024], state[1024];
int probes, held;

int place(int key) {
  int at = key * 0x27d4eb2d >> 7 & 1023;
  int free = -1;
  while (state[at] != 0) {
    probes += 1;
    if (state[at] == 1 && keys[at] == key) return at;
    if (state[at] == 2 && free < 0) free = at;
    at = at + 1 & 1023;
  }
  if (free >= 0) return free;
  return at;
}

void put(int key, int value) {
  int at = place(key);
  if (state[at] != 1) {
    held += 1;
    state[at] = 1;
    keys[at] = key;
    values[at] = 0;
  }
  values[at] += value;
}

int get(int key) {
  int at = place(key);
  if (state[at] == 1) return values[at];
  return -1;
}

void drop(int key) {
  int at = place(key);
  if (state[at] != 1) return;
  state[at] = 2;
  held -= 1;
}

int main(void) {
  int seed = get_int(), checksum = 0, missing = 0;
  for (int round = 0; round < 5000; round += 1) {
    seed = seed * 214013 + 2531011;
    int key = (seed >> 16 & 0x7fff) % 700;
    seed = seed * 214013 + 2531011;
    int what = (seed >> 16 & 0x7fff) % 5;
    if (what < 3) put(key, round % 100);
    else if (what == 3) {
      int value = get(key);
      if (value < 0) missing += 1;
      else checksum = checksum * 33 + value;
    } else {
      drop(key);
    }
    if (round % 1000 == 999) { put_int(held); put_char(' '); put_int(probes); put_char('\n'); }
  }
  put_int(missing); put_char('\n');
  put_int(checksum); put_char('\n');
  int direct = 0;
  for (int at = 0; at < 1024; at += 1) if (state[at] == 1) direct += 1;
  return direct != held;
}
