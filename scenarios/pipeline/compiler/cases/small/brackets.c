// Whether the brackets of each line fit, and where the first one does not.
int open[100];

int partner(int c) {
  if (c == ')') return '(';
  if (c == ']') return '[';
  if (c == '}') return '{';
  return 0;
}

int main(void) {
  int depth = 0, column = 0, wrong = 0, lines = 0;
  int c = get_char();
  while (c != -1) {
    column += 1;
    if (c == '\n') {
      if (!wrong && depth > 0) wrong = column;
      put_int(wrong);
      put_char('\n');
      depth = 0; column = 0; wrong = 0;
      lines += 1;
    } else if (c == '(' || c == '[' || c == '{') {
      open[depth] = c;
      depth += 1;
    } else if (partner(c) && !wrong) {
      if (depth == 0 || open[depth - 1] != partner(c)) wrong = column;
      else depth -= 1;
    }
    c = get_char();
  }
  return lines;
}
