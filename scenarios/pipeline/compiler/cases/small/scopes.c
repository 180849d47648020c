/* The same name many times over: which one is meant? */
int x = 1;

int next(int x) {
  x += 1;
  {
    int x = 100;
    x += 1;
  }
  return x;
}

int outer(void) { return x; }

int main(void) {
  put_int(x);
  int x = get_int();
  put_int(x);
  {
    put_int(x);
    int x = 3;
    put_int(x);
    for (int x = 4; x < 6; x += 1) {
      put_int(x);
      int y = x * 10, x = y + 1;
      put_int(x);
    }
    put_int(x);
    if (x == 3) {
      int x = 7;
      put_int(x);
    }
    while (x < 4) {
      x += 1;
      int x = 8;
      put_int(x);
    }
    put_int(x);
  }
  put_int(x);
  put_int(next(x));
  put_int(outer());
  put_char('\n');
  return x;
}
