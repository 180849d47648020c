// T4: make LLVM IR better; so far it stays as it is.

#include <fstream>
#include <iterator>
#include <string>

int main(int, char **arguments) {
    std::ifstream source(arguments[1]);
    std::ofstream output(arguments[2]);
    std::string ir((std::istreambuf_iterator<char>(source)), std::istreambuf_iterator<char>());

    // To do: keep variables out of memory, compute constants, leave out what nobody needs.
    output << ir;
    return output.good() ? 0 : 1;
}
