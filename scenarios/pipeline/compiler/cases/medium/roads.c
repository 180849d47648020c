// The cheapest way from one town to all others.
int cost[10][10], total[10], done[10], before[10];

void way(int town) {
  if (before[town] != town) {
    way(before[town]);
    put_char('-');
  }
  put_int(town);
}

int main(void) {
  int towns = get_int();
  int roads = get_int();
  for (int i = 0; i < roads; i += 1) {
    int a = get_int();
    int b = get_int();
    cost[a][b] = get_int();
    cost[b][a] = cost[a][b];
  }
  for (int town = 1; town < towns; town += 1) total[town] = 1000000;
  for (int round = 0; round < towns; round += 1) {
    int nearest = -1;
    for (int town = 0; town < towns; town += 1) {
      if (done[town]) continue;
      if (nearest < 0 || total[town] < total[nearest]) nearest = town;
    }
    done[nearest] = 1;
    for (int town = 0; town < towns; town += 1) {
      if (!cost[nearest][town]) continue;
      int by = total[nearest] + cost[nearest][town];
      if (by < total[town]) {
        total[town] = by;
        before[town] = nearest;
      }
    }
  }
  int sum = 0;
  for (int town = 0; town < towns; town += 1) {
    put_int(total[town]);
    put_char('\t');
    way(town);
    put_char('\n');
    sum += total[town];
  }
  return sum;
}
