// the case b
int main(void) { return 0; }
