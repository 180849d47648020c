// Puts jobs in an order in which each comes after those that it needs, and groups friends.
int needs[12][12], waiting[12], order[12], leader[12];

int find(int who) {
  while (leader[who] != who) {
    leader[who] = leader[leader[who]];
    who = leader[who];
  }
  return who;
}

int main(void) {
  int jobs = get_int();
  int pairs = get_int(), joined = 0;
  for (int job = 0; job < jobs; job += 1) leader[job] = job;
  for (int i = 0; i < pairs; i += 1) {
    int first = get_int();
    int second = get_int();
    needs[second][first] = 1;
    waiting[second] += 1;
    int a = find(first), b = find(second);
    if (a == b) continue;
    leader[a] = b;
    joined += 1;
  }
  int head = 0, tail = 0;
  for (int job = 0; job < jobs; job += 1)
    if (waiting[job] == 0) {
      order[tail] = job;
      tail += 1;
    }
  while (head < tail) {
    int layer = tail;
    for (; head < layer; head += 1) {
      put_int(order[head]);
      put_char(' ');
      for (int job = 0; job < jobs; job += 1) {
        if (!needs[job][order[head]]) continue;
        waiting[job] -= 1;
        if (waiting[job] > 0) continue;
        order[tail] = job;
        tail += 1;
      }
    }
    put_char('|');
  }
  put_char('\n');
  put_int(tail); put_char('/'); put_int(jobs); put_char('\n');
  return jobs - joined;
}
