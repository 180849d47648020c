// Who is left of a circle from which every k-th goes.
int next[60];

int last(int people, int k) {
  for (int i = 0; i < people; i += 1) next[i] = (i + 1) % people;
  int before = people - 1;
  while (next[before] != before) {
    for (int i = 1; i < k; i += 1) before = next[before];
    next[before] = next[next[before]];
  }
  return before + 1;
}

int main(void) {
  int people = get_int();
  for (int k = 1; k < 6; k += 1) {
    put_int(last(people, k));
    put_char(' ');
  }
  put_char('\n');
  return last(10, 3);
}
