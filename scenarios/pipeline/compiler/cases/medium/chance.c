// A generator of numbers that look like chance, and how evenly it fills boxes.
int state = 0x2545F491;
int boxes[10];

int draw(int sides) {
  state = state ^ state << 13;
  state = state ^ (state >> 17 & 0x7FFF);
  state = state ^ state << 5;
  return (state & 0x7fffffff) % sides;
}

int main(void) {
  int throws = get_int();
  for (int i = 0; i < throws; i += 1) boxes[draw(10)] += 1;
  int spread = 0;
  for (int i = 0; i < 10; i += 1) {
    put_int(boxes[i]);
    put_char(' ');
    spread += (boxes[i] - 100) * (boxes[i] - 100);
  }
  put_char('\n');
  int inside = 0;
  for (int i = 0; i < 500; i += 1) {
    int x = draw(1000), y = draw(1000);
    if (x * x + y * y < 1000000) inside += 1;
  }
  put_int(inside * 4 / 5);
  put_char('\n');
  put_int(spread);
  put_char('\n');
  return draw(256);
}
