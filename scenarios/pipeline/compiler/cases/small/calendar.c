// Leap years, and the day of the week of a date (Monday is 0).
const int BEFORE[12] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};

int leap(int year) { return year % 4 == 0 && year % 100 != 0 || year % 400 == 0; }

int weekday(int year, int month, int day) {
  int past = year - 1;
  int days = past * 365 + past / 4 - past / 100 + past / 400;
  days += BEFORE[month - 1] + day - 1;
  if (month > 2 && leap(year)) days += 1;
  return days % 7;
}

int main(void) {
  int leaps = 0, newest = get_int();
  for (int year = 1896; year <= newest; year += 4) {
    if (!leap(year)) continue;
    put_int(year % 100);
    put_char(',');
    leaps += 1;
  }
  put_char('\n');
  put_int(weekday(1970, 1, 1));
  put_int(weekday(2000, 2, 29));
  put_int(weekday(2001, 3, 1));
  put_int(weekday(1999, 12, 31));
  put_char('\n');
  return leaps;
}
