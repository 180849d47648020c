// T1: write the tokens of a program; so far this one knows the semicolon only.

#include <fstream>
#include <string>

int main(int, char **arguments) {
    std::ifstream source(arguments[1]);
    std::ofstream output(arguments[2]);

    std::string line;
    for (int number = 1; std::getline(source, line); number++) {
        for (std::size_t at = 0; at < line.size(); at++) {
            if (line[at] != ';')
                continue;
            bool start = line.find_first_not_of(" \t") == at;
            bool space = at > 0 && (line[at - 1] == ' ' || line[at - 1] == '\t');
            output << "{\"kind\":\"semi\",\"text\":\";\",\"line\":" << number
                   << ",\"column\":" << at + 1 << std::boolalpha << ",\"start\":" << start
                   << ",\"space\":" << space << "}\n";
        }
    }
    return output.good() ? 0 : 1;
}
