// The shortest way through a maze, step by step in all directions at once.
int wall[20][20], steps[20][20];
int rows[400], columns[400];
const int DOWN[4] = {1, -1, 0, 0}, RIGHT[4] = {0, 0, 1, -1};

int main(void) {
  int height = get_int(), head = 0, tail = 0;
  int goal = -1, line = 0, column = 0, width = 0;
  int c = get_char();
  while (line < height) {
    c = get_char();
    if (c == '\n') {
      width = column;
      line += 1;
      column = 0;
      continue;
    }
    steps[line][column] = -1;
    if (c == '#') wall[line][column] = 1;
    if (c == 'S') {
      steps[line][column] = 0;
      rows[tail] = line;
      columns[tail] = column;
      tail += 1;
    }
    if (c == 'E') goal = line * 20 + column;
    column += 1;
  }
  while (head < tail) {
    int r = rows[head], k = columns[head];
    head += 1;
    for (int way = 0; way < 4; way += 1) {
      int to = r + DOWN[way], at = k + RIGHT[way];
      if (to < 0 || to >= height || at < 0 || at >= width) continue;
      if (wall[to][at] || steps[to][at] >= 0) continue;
      steps[to][at] = steps[r][k] + 1;
      rows[tail] = to;
      columns[tail] = at;
      tail += 1;
    }
  }
  for (int r = 0; r < height; r += 1) {
    for (int k = 0; k < width; k += 1) {
      if (wall[r][k]) put_char('#');
      else if (steps[r][k] < 0) put_char('?');
      else put_char('a' + steps[r][k] % 26);
    }
    put_char('\n');
  }
  put_int(steps[goal / 20][goal % 20]);
  put_char('\n');
  return tail;
}
