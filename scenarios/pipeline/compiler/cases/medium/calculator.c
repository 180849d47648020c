// Works out one sum on each line: + - * / % with brackets and signs.
int c;
int sums;

void next(void) {
  c = get_char();
  while (c == ' ') c = get_char();
}

int sum(void);

int atom(void) {
  if (c == '-') {
    next();
    return -atom();
  }
  if (c == '(') {
    next();
    int inner = sum();
    next();
    return inner;
  }
  int value = 0;
  while (c >= '0' && c <= '9') {
    value = value * 10 + c - '0';
    next();
  }
  return value;
}

int product(void) {
  int left = atom();
  while (c == '*' || c == '/' || c == '%') {
    int sign = c;
    next();
    int right = atom();
    if (sign == '*') left *= right;
    else if (sign == '/') left /= right;
    else left %= right;
  }
  return left;
}

int sum(void) {
  int left = product();
  while (c == '+' || c == '-') {
    int sign = c;
    next();
    if (sign == '+') left += product();
    else left -= product();
  }
  sums += 1;
  return left;
}

int main(void) {
  next();
  while (c != -1) {
    put_int(sum());
    put_char('\n');
    next();
  }
  return sums;
}
