// A picture of the set of numbers that never run away, in steps of 1/4096.
int main(void) {
  int inside = 0, left = get_int();
  for (int row = 0; row < 20; row += 1) {
    int y = (row - 10) * 512;
    for (int column = 0; column < 60; column += 1) {
      int x = column * 204 - left;
      int a = 0, b = 0, steps = 0;
      while (steps < 60) {
        int aa = a * a >> 12, bb = b * b >> 12;
        if (aa + bb > 16384) break;
        b = (a * b >> 11) + y;
        a = aa - bb + x;
        steps += 1;
      }
      if (steps == 60) { put_char('#'); inside += 1; }
      else if (steps > 12) put_char('+');
      else if (steps > 5) put_char('-');
      else put_char('.');
    }
    put_char('\n');
  }
  return inside & 0xFF;
}
