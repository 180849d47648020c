// What to pack: the most worth that a bag can carry, and which things it is.
int weight[12], worth[12];
int best[13][60];

int main(void) {
  int things = get_int();
  int carried = get_int();
  for (int i = 0; i < things; i += 1) {
    weight[i] = get_int();
    worth[i] = get_int();
  }
  for (int i = 1; i <= things; i += 1)
    for (int room = 0; room <= carried; room += 1) {
      best[i][room] = best[i - 1][room];
      if (weight[i - 1] > room) continue;
      int with = best[i - 1][room - weight[i - 1]] + worth[i - 1];
      if (with > best[i][room]) best[i][room] = with;
    }
  put_int(best[things][carried]);
  put_char(':');
  int room = carried, packed = 0;
  for (int i = things; i > 0; i -= 1)
    if (best[i][room] != best[i - 1][room]) {
      put_char(' ');
      put_int(i);
      room -= weight[i - 1];
      packed += 1;
    }
  put_char('\n');
  put_int(room);
  put_char('\n');
  return packed;
}
