// The shortest ways between all pairs of towns, and the two that lie farthest apart.
int far[36][36], via[36][36];

int steps(int a, int b) {
  int over = via[a][b];
  if (over < 0) return 1;
  return steps(a, over) + steps(over, b);
}

int main(void) {
  const int none = 100000000;
  int seed = get_int();
  for (int a = 0; a < 36; a += 1)
    for (int b = 0; b < 36; b += 1) {
      via[a][b] = -1;
      far[a][b] = none;
      if (a == b) far[a][b] = 0;
    }
  for (int road = 0; road < 90; road += 1) {
    seed = seed * 1103515245 + 12345;
    int a = (seed >> 16 & 0x7fff) % 36;
    seed = seed * 1103515245 + 12345;
    int b = (seed >> 16 & 0x7fff) % 36;
    seed = seed * 1103515245 + 12345;
    int length = 1 + (seed >> 16 & 0x7fff) % 50;
    if (a == b || far[a][b] <= length) continue;
    far[a][b] = length;
    far[b][a] = length;
  }
  for (int over = 0; over < 36; over += 1)
    for (int a = 0; a < 36; a += 1) {
      if (far[a][over] == none) continue;
      for (int b = 0; b < 36; b += 1) {
        int length = far[a][over] + far[over][b];
        if (length >= far[a][b]) continue;
        far[a][b] = length;
        via[a][b] = over;
      }
    }
  int farthest = 0, from = 0, to = 0, sum = 0, apart = 0;
  for (int a = 0; a < 36; a += 1)
    for (int b = 0; b < a; b += 1) {
      if (far[a][b] == none) { apart += 1; continue; }
      sum += far[a][b];
      if (far[a][b] <= farthest) continue;
      farthest = far[a][b];
      from = b;
      to = a;
    }
  put_int(from); put_char('-'); put_int(to); put_char(' ');
  put_int(farthest); put_char('/'); put_int(steps(from, to)); put_char('\n');
  put_int(sum); put_char('\n');
  put_int(apart); put_char('\n');
  return farthest % 256;
}
