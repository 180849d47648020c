// The smallest, the largest and the mean of numbers, and how far they lie apart.
int main(void) {
  int count = get_int();
  int low = 2147483647, high = -2147483647, total = 0;
  for (int i = 0; i < count; i += 1) {
    int value = get_int();
    if (value < low) low = value;
    if (value > high) high = value;
    total += value;
  }
  put_int(low); put_char('\t');
  put_int(high); put_char('\t');
  put_int(total / count); put_char('\t');
  put_int(high - low); put_char('\n');
  return total % 100 + 100;
}
