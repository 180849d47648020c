// Factorials with all their digits, four to a place.
int number[30];
int places = 1;

void multiply(int by) {
  int carry = 0;
  for (int i = 0; i < places; i += 1) {
    int value = number[i] * by + carry;
    number[i] = value % 10000;
    carry = value / 10000;
  }
  if (carry) {
    number[places] = carry;
    places += 1;
  }
}

void show(void) {
  put_int(number[places - 1]);
  for (int i = places - 2; i >= 0; i -= 1) {
    int place = number[i];
    for (int unit = 1000; unit > 0; unit /= 10) put_char('0' + place / unit % 10);
  }
  put_char('\n');
}

int main(void) {
  int last = get_int();
  number[0] = 1;
  for (int n = 1; n <= last; n += 1) {
    multiply(n);
    if (n % 10 == 0) show();
  }
  return places;
}
