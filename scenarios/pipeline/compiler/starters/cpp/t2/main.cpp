// T2: write the tree of a program; so far it is one node.

#include <fstream>
#include <string>
#include <vector>

int main(int, char **arguments) {
    std::ifstream source(arguments[1]);
    std::ofstream output(arguments[2]);

    std::vector<std::string> tokens;
    for (std::string line; std::getline(source, line);)
        tokens.push_back(line);

    // To do: make declarations of the tokens.
    output << "{\"kind\":\"to do\"}\n";
    return output.good() ? 0 : 1;
}
