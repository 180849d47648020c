// The game of life on a larger field: a glider gun of chance, watched for a while.
int now[34][34], then[34][34];

int main(void) {
  int seed = get_int();
  for (int r = 1; r < 33; r += 1)
    for (int c = 1; c < 33; c += 1) {
      seed = seed * 69069 + 1;
      now[r][c] = (seed >> 24 & 3) == 0;
    }
  int alive = 0, changed = 0;
  for (int generation = 1; generation <= 24; generation += 1) {
    alive = 0;
    changed = 0;
    for (int r = 1; r < 33; r += 1)
      for (int c = 1; c < 33; c += 1) {
        int n = now[r - 1][c - 1] + now[r - 1][c] + now[r - 1][c + 1] + now[r][c - 1]
              + now[r][c + 1] + now[r + 1][c - 1] + now[r + 1][c] + now[r + 1][c + 1];
        int next = 0;
        if (n == 3 || now[r][c] && n == 2) next = 1;
        if (next != now[r][c]) changed += 1;
        then[r][c] = next;
        alive += next;
      }
    for (int r = 1; r < 33; r += 1)
      for (int c = 1; c < 33; c += 1) now[r][c] = then[r][c];
    if (generation % 6 == 0) { put_int(alive); put_char(' '); put_int(changed); put_char('\n'); }
  }
  for (int r = 1; r < 33; r += 4) {
    for (int c = 1; c < 33; c += 1)
      if (now[r][c]) put_char('@'); else put_char('.');
    put_char('\n');
  }
  return alive % 256;
}
