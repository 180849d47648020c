// Powers of a matrix whose first column counts what rabbits do.
int a[4][4] = {{0, 1, 1, 0}, {1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 1}};
int power[4][4], product[4][4];

void multiply(int to[][4], const int x[][4], const int y[][4]) {
  for (int i = 0; i < 4; i += 1)
    for (int k = 0; k < 4; k += 1) {
      int sum = 0;
      for (int m = 0; m < 4; m += 1) sum += x[i][m] * y[m][k];
      to[i][k] = sum % 10007;
    }
}

void copy(int to[][4], const int from[][4]) {
  for (int i = 0; i < 4; i += 1)
    for (int k = 0; k < 4; k += 1) to[i][k] = from[i][k];
}

void row(const int v[]) {
  for (int i = 0; i < 4; i += 1) {
    put_int(v[i]);
    put_char(' ');
  }
}

int main(void) {
  int last = get_int();
  for (int i = 0; i < 4; i += 1) power[i][i] = 1;
  for (int n = 1; n <= last; n += 1) {
    multiply(product, power, a);
    copy(power, product);
    if (n % 8) continue;
    for (int i = 0; i < 4; i += 1) row(power[i]);
    put_char('\n');
  }
  int trace = 0;
  for (int i = 0; i < 4; i += 1) trace += power[i][i];
  return trace & 255;
}
