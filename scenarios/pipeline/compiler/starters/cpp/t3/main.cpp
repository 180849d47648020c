// T3: write LLVM IR for a tree; so far every program does nothing.

#include <fstream>
#include <iterator>
#include <string>

int main(int, char **arguments) {
    std::ifstream source(arguments[1]);
    std::ofstream output(arguments[2]);
    std::string tree((std::istreambuf_iterator<char>(source)), std::istreambuf_iterator<char>());

    // To do: go through the tree.
    output << "define i32 @main() {\n  ret i32 0\n}\n";
    return output.good() ? 0 : 1;
}
