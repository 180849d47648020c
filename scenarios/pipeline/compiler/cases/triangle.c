// A triangle of stars, and its mirror image.
void line(int spaces, int stars) {
  while (spaces > 0) { put_char(' '); spaces -= 1; }
  while (stars > 0) { put_char('*'); stars -= 1; }
  put_char('\n');
}

int main(void) {
  int height = get_int();
  for (int row = 0; row < height; row += 1) line(height - row - 1, 2 * row + 1);
  for (int row = height - 2; row >= 0; row -= 1) line(height - row - 1, 2 * row + 1);
  return height * height;
}
