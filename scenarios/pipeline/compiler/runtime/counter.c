/* What unicorn calls before each block of instructions that it executes. */

struct counter {
    unsigned long long executed, most; /* instructions: so far, and allowed */
    unsigned long long foreign;        /* the address of an instruction of two bytes, or 0 */
    unsigned long long low, size;      /* the addresses of all code, which nothing can write to */
    const unsigned char *code;
    int (*stop)(void *machine);
};

void count(void *machine, unsigned long long address, unsigned size, struct counter *counter) {
    unsigned long long at = address - counter->low, end = at + size;
    counter->executed += (size + 3) / 4;
    for (; at < end && end <= counter->size; at += 4) /* the lowest bits tell the length */
        if (at % 4 || (counter->code[at] & 3) != 3)
            counter->foreign = counter->low + at;
    if (counter->foreign || counter->executed > counter->most)
        counter->stop(machine);
}
