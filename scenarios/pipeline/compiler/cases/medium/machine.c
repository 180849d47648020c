// A machine with one tape and eight commands, and a program for it.
int program[200], partner[200], tape[50], stack[20];

int main(void) {
  int length = 0, depth = 0, steps = 0;
  int c = get_char();
  while (c != '\n') {
    program[length] = c;
    if (c == '[') { stack[depth] = length; depth += 1; }
    if (c == ']') {
      depth -= 1;
      partner[length] = stack[depth];
      partner[stack[depth]] = length;
    }
    length += 1;
    c = get_char();
  }
  int cell = 0;
  for (int at = 0; at < length; at += 1) {
    int command = program[at];
    steps += 1;
    if (command == '>') cell += 1;
    else if (command == '<') cell -= 1;
    else if (command == '+') tape[cell] = tape[cell] + 1 & 255;
    else if (command == '-') tape[cell] = tape[cell] - 1 & 255;
    else if (command == '.') put_char(tape[cell]);
    else if (command == ',') {
      tape[cell] = get_char();
      if (tape[cell] < 0) tape[cell] = 0;
    } else if (command == '[') {
      if (tape[cell] == 0) at = partner[at];
    } else if (command == ']') {
      if (tape[cell] != 0) at = partner[at];
    }
  }
  put_char('\n');
  put_int(steps);
  put_char('\n');
  return cell;
}
