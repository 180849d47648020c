// A machine with a stack runs a program that it reads: numbers and one-letter commands.
int code[300], operand[300], stack[64], memory[32];
int size, top;

void push(int value) { stack[top] = value; top += 1; }

int pop(void) { top -= 1; return stack[top]; }

void load(void) {
  int labels[26] = {0}, jumps[60], targets[60], count = 0;
  int c = get_char();
  while (c != -1) {
    if (c <= ' ') { c = get_char(); continue; }
    if (c >= '0' && c <= '9') {
      int value = 0;
      for (; c >= '0' && c <= '9'; c = get_char()) value = value * 10 + c - '0';
      code[size] = '#';
      operand[size] = value;
      size += 1;
      continue;
    }
    if (c == ':') {
      labels[get_char() - 'a'] = size;
    } else if (c == 'j' || c == 'z') {
      code[size] = c;
      jumps[count] = size;
      targets[count] = get_char() - 'a';
      count += 1;
      size += 1;
    } else {
      code[size] = c;
      size += 1;
    }
    c = get_char();
  }
  for (int i = 0; i < count; i += 1) operand[jumps[i]] = labels[targets[i]];
}

int main(void) {
  load();
  int at = 0, steps = 0;
  while (at < size) {
    int command = code[at];
    at += 1;
    steps += 1;
    if (command == '#') { push(operand[at - 1]); continue; }
    if (command == 'j') { at = operand[at - 1]; continue; }
    if (command == 'z') { if (pop() == 0) at = operand[at - 1]; continue; }
    if (command == '@') { push(memory[pop()]); continue; }
    if (command == '!') { int where = pop(); memory[where] = pop(); continue; }
    if (command == 'p') { put_int(pop()); put_char(' '); continue; }
    if (command == 'n') { put_char('\n'); continue; }
    if (command == 'd') { push(stack[top - 1]); continue; }
    if (command == 'q') break;
    int right = pop();
    int left = pop();
    if (command == '+') push(left + right);
    else if (command == '-') push(left - right);
    else if (command == '*') push(left * right);
    else if (command == '/') push(left / right);
    else if (command == '%') push(left % right);
    else if (command == '<') push(left < right);
    else if (command == '=') push(left == right);
  }
  put_int(steps);
  put_char('\n');
  return top;
}
