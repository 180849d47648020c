// T1: write the tokens of a program; so far this one writes none.

#include <fstream>
#include <string>

void write_token(std::ostream &output, const std::string &kind, const std::string &text, int line,
                 int column, bool start, bool space) {
    output << "{\"kind\":\"" << kind << "\",\"text\":\"" << text << "\",\"line\":" << line
           << ",\"column\":" << column << std::boolalpha << ",\"start\":" << start
           << ",\"space\":" << space << "}\n";
}

int main(int, char **arguments) {
    std::ifstream source(arguments[1]);
    std::ofstream output(arguments[2]);

    std::string line;
    for (int number = 1; std::getline(source, line); number++) {
        // To do: write the tokens of the line.
    }
    return output.good() ? 0 : 1;
}
