// Moves a tower, disc by disc, and shows where the discs are.
int pegs[3][6], height[3];
int moves;

void show(void) {
  for (int peg = 0; peg < 3; peg += 1) {
    for (int i = 0; i < height[peg]; i += 1) put_int(pegs[peg][i]);
    put_char('|');
  }
  put_char('\n');
}

void move(int from, int to) {
  height[from] -= 1;
  pegs[to][height[to]] = pegs[from][height[from]];
  height[to] += 1;
  moves += 1;
  if (moves % 9 == 0) show();
}

void tower(int discs, int from, int to, int over) {
  if (discs == 0) return;
  tower(discs - 1, from, over, to);
  move(from, to);
  tower(discs - 1, over, to, from);
}

int main(void) {
  for (int disc = 6; disc > 0; disc -= 1) {
    pegs[0][height[0]] = disc;
    height[0] += 1;
  }
  show();
  tower(6, 0, 2, 1);
  show();
  return moves;
}
