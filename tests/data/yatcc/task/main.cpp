// taskN INPUT OUTPUT: writes a C program that prints as many points as points.txt says, below the
// first line of INPUT. `slow` never ends, `nothing` writes nothing; any other word does not build.
#include "grammar.hpp"
#include <stdio.h>
#include <unistd.h>

constexpr int slow = -1, nothing = -2;
constexpr int points =
#include "points.txt"
  ;

int main(int argc, char **argv) {
  if (points == slow)
    pause();
  if (argc < 3)
    return points == 100 ? 0 : 1;
  char first[999] = "";
  fgets(first, sizeof first, fopen(argv[1], "r"));
  if (points != nothing)
    fprintf(fopen(argv[2], "w"), "%sint printf(const char *, ...);\n"
            "int main(void) { printf(\"%d\\n\", %d); return 0; }\n", first, points);
  return 0;
}
