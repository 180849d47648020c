/* Adds up numbers that it reads: first how many, then the numbers. */
int values[100];

int sum(int from[], int count) {
  int total = 0;
  for (int i = 0; i < count; i += 1) total += from[i];
  return total;
}

int main(void) {
  int count = get_int();
  for (int i = 0; i < count; i += 1) values[i] = get_int();
  put_int(sum(values, count));
  put_char('\n');
  return 0;
}
