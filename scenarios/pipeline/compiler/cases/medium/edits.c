// How many letters must change to make one word of another, for each pair of words.
int words[6][12], lengths[6];
int cost[13][13];

int smaller(int a, int b) {
  if (a < b) return a;
  return b;
}

int distance(const int a[], int m, const int b[], int n) {
  for (int i = 0; i <= m; i += 1) cost[i][0] = i;
  for (int k = 0; k <= n; k += 1) cost[0][k] = k;
  for (int i = 1; i <= m; i += 1)
    for (int k = 1; k <= n; k += 1) {
      int kept = cost[i - 1][k - 1] + (a[i - 1] != b[k - 1]);
      cost[i][k] = smaller(kept, smaller(cost[i - 1][k], cost[i][k - 1]) + 1);
    }
  return cost[m][n];
}

int main(void) {
  for (int word = 0; word < 6; word += 1) {
    int c = get_char(), length = 0;
    for (; c > ' '; c = get_char()) {
      words[word][length] = c;
      length += 1;
    }
    lengths[word] = length;
  }
  int total = 0;
  for (int i = 0; i < 6; i += 1) {
    for (int k = 0; k < 6; k += 1) {
      int d = distance(words[i], lengths[i], words[k], lengths[k]);
      put_int(d);
      put_char(' ');
      total += d;
    }
    put_char('\n');
  }
  return total;
}
