// Multiplies matrices in two orders of the loops, and checks that both give the same.
int a[32][32], b[32][32], c[32][32], d[32][32];

void fill(int m[][32], int seed) {
  for (int i = 0; i < 32; i += 1)
    for (int k = 0; k < 32; k += 1) {
      seed = seed * 1664525 + 1013904223;
      m[i][k] = (seed >> 20) % 100;
    }
}

void by_rows(int to[][32], const int x[][32], const int y[][32]) {
  for (int i = 0; i < 32; i += 1)
    for (int k = 0; k < 32; k += 1) {
      int sum = 0;
      for (int m = 0; m < 32; m += 1) sum += x[i][m] * y[m][k];
      to[i][k] = sum;
    }
}

void by_columns(int to[][32], const int x[][32], const int y[][32]) {
  for (int m = 0; m < 32; m += 1)
    for (int i = 0; i < 32; i += 1) {
      int factor = x[i][m];
      for (int k = 0; k < 32; k += 1) to[i][k] += factor * y[m][k];
    }
}

int main(void) {
  fill(a, 1);
  fill(b, get_int());
  by_rows(c, a, b);
  by_columns(d, a, b);
  int different = 0, trace = 0, all = 0;
  for (int i = 0; i < 32; i += 1) {
    trace += c[i][i];
    for (int k = 0; k < 32; k += 1) {
      if (c[i][k] != d[i][k]) different += 1;
      all = all * 31 + c[i][k];
    }
  }
  put_int(c[0][0]); put_char(' ');
  put_int(c[31][31]); put_char(' ');
  put_int(trace); put_char(' ');
  put_int(all); put_char('\n');
  return different;
}
