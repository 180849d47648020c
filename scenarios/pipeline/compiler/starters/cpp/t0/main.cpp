// T0: say which language the stages are written in; the rest is still to be found out.

#include <fstream>
#include <string>

int main(int, char **arguments) {
    std::string hello = arguments[1], output = arguments[2];

    // To do: compile, link and run `hello`, and say which versions did it.
    std::ofstream file(output);
    file << "{\"language\": {\"command\": \"c++\", \"version\": \"" << __GNUC__ << '.'
         << __GNUC_MINOR__ << '.' << __GNUC_PATCHLEVEL__ << "\"}}\n";
    return file.good() ? 0 : 1;
}
