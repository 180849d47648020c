// In how many ways sums can be paid with coins, and the fewest coins for each.
const int COINS[7] = {1, 2, 5, 10, 20, 50, 100};
int ways[2001], fewest[2001], last[2001];

int main(void) {
  int largest = get_int();
  ways[0] = 1;
  for (int coin = 0; coin < 7; coin += 1)
    for (int sum = COINS[coin]; sum <= largest; sum += 1) {
      ways[sum] += ways[sum - COINS[coin]];
      ways[sum] %= 1000007;
    }
  for (int sum = 1; sum <= largest; sum += 1) {
    fewest[sum] = 1 << 30;
    for (int coin = 0; coin < 7 && COINS[coin] <= sum; coin += 1) {
      int count = fewest[sum - COINS[coin]] + 1;
      if (count >= fewest[sum]) continue;
      fewest[sum] = count;
      last[sum] = coin;
    }
  }
  for (int sum = 199; sum <= largest; sum += 600) {
    put_int(sum); put_char(' ');
    put_int(ways[sum]); put_char(' ');
    put_int(fewest[sum]); put_char(':');
    for (int rest = sum; rest > 0; rest -= COINS[last[rest]]) { put_char(' '); put_int(COINS[last[rest]]); }
    put_char('\n');
  }
  int dear = 0;
  for (int sum = 0; sum <= largest; sum += 1) if (fewest[sum] > fewest[dear]) dear = sum;
  put_int(dear);
  put_char('\n');
  return fewest[dear];
}
