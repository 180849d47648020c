// A machine with one tape: it compiles its program first, then prints the squares of numbers.
int source[400], kind[400], amount[400], tape[100], open[40];

int read(void) {
  int length = 0;
  for (int c = get_char(); c != -1; c = get_char())
    if (c == '+' || c == '-' || c == '<' || c == '>' || c == '.' || c == '[' || c == ']') {
      source[length] = c;
      length += 1;
    }
  return length;
}

int compile(int length) {
  int size = 0, depth = 0;
  for (int i = 0; i < length; i += 1) {
    int c = source[i];
    int by = 1;
    if (c == '-' || c == '<') by = -1;
    if (c == '-') c = '+';
    if (c == '<') c = '>';
    if (size > 0 && (c == '+' || c == '>') && kind[size - 1] == c) {
      amount[size - 1] += by;
      continue;
    }
    kind[size] = c;
    amount[size] = by;
    if (c == '[') {
      open[depth] = size;
      depth += 1;
    } else if (c == ']') {
      depth -= 1;
      amount[size] = open[depth];
      amount[open[depth]] = size;
    }
    size += 1;
  }
  return size;
}

int main(void) {
  int size = compile(read());
  int at = 0, cell = 0, steps = 0;
  while (at < size) {
    int what = kind[at];
    steps += 1;
    if (what == '+') tape[cell] = tape[cell] + amount[at] & 0xff;
    else if (what == '>') cell += amount[at];
    else if (what == '.') put_char(tape[cell]);
    else if (what == '[') { if (!tape[cell]) at = amount[at]; }
    else if (tape[cell]) at = amount[at];
    at += 1;
  }
  put_int(size); put_char(' ');
  put_int(steps); put_char('\n');
  return cell;
}
