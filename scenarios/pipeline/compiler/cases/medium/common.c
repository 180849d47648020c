// The longest sequence of letters that two lines have in common.
int one[80], two[80];
int longest[81][81];

int line(int into[]) {
  int length = 0;
  int c = get_char();
  while (c != '\n' && c != -1) {
    into[length] = c;
    length += 1;
    c = get_char();
  }
  return length;
}

void show(int i, int k) {
  if (i == 0 || k == 0) return;
  if (one[i - 1] == two[k - 1]) {
    show(i - 1, k - 1);
    put_char(one[i - 1]);
  } else if (longest[i - 1][k] >= longest[i][k - 1]) {
    show(i - 1, k);
  } else {
    show(i, k - 1);
  }
}

int main(void) {
  int m = line(one);
  int n = line(two);
  for (int i = 1; i <= m; i += 1)
    for (int k = 1; k <= n; k += 1) {
      if (one[i - 1] == two[k - 1]) longest[i][k] = longest[i - 1][k - 1] + 1;
      else if (longest[i - 1][k] > longest[i][k - 1]) longest[i][k] = longest[i - 1][k];
      else longest[i][k] = longest[i][k - 1];
    }
  show(m, n);
  put_char('\n');
  return longest[m][n];
}
