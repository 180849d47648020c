/* What unicorn calls before each block of instructions that it executes. */

struct counter {
    unsigned long long size, most; /* bytes of instructions: executed, and allowed */
    int (*stop)(void *machine);
};

void count(void *machine, unsigned long long address, unsigned size, struct counter *counter) {
    (void)address;
    counter->size += size;
    if (counter->size > counter->most)
        counter->stop(machine);
}
