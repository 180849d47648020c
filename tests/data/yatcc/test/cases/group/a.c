// the case a
int main(void) { return 0; }
