/* What a program of the small C finds on the machine: input, output, and the three functions
   that LLVM calls for copying. An ecall takes its number in a7: 63 read, 64 write, 93 exit.

   Arguments come as long and are cut to int, so that a caller that left rubbish in the upper
   half of a register is served too. */

static char in[4096];
static long in_size, in_at;

static long ecall(long number, long first, long second, long third) {
    register long a0 __asm__("a0") = first;
    register long a1 __asm__("a1") = second;
    register long a2 __asm__("a2") = third;
    register long a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
    return a0;
}

static int next(void) {
    if (in_at == in_size) {
        in_at = 0;
        in_size = ecall(63, 0, (long)in, sizeof in);
        if (in_size <= 0) {
            in_size = 0;
            return -1;
        }
    }
    return (unsigned char)in[in_at++];
}

int get_char(void) { return next(); }

int get_int(void) {
    int seen = next();
    while (seen == ' ' || seen == '\n' || seen == '\t' || seen == '\r')
        seen = next();
    int negative = seen == '-';
    if (negative)
        seen = next();
    unsigned value = 0;
    while (seen >= '0' && seen <= '9') {
        value = value * 10 + (unsigned)(seen - '0');
        seen = next();
    }
    if (seen >= 0)
        in_at--;
    return (int)(negative ? 0u - value : value);
}

void put_char(long raw) {
    char shown = (char)raw;
    ecall(64, 1, (long)&shown, 1);
}

void put_int(long raw) {
    int value = (int)raw;
    unsigned rest = value < 0 ? 0u - (unsigned)value : (unsigned)value;
    char shown[12];
    int at = sizeof shown;
    do {
        shown[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (value < 0)
        shown[--at] = '-';
    ecall(64, 1, (long)(shown + at), (long)sizeof shown - at);
}

void *memset(void *to, int value, unsigned long size) {
    for (char *at = to; size; size--)
        *at++ = (char)value;
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, unsigned long size) {
    char *at = to;
    for (const char *next = from; size; size--)
        *at++ = *next++;
    return to;
}

void *memmove(void *to, const void *from, unsigned long size) {
    char *at = to;
    const char *next = from;
    if (at <= next)
        return memcpy(to, from, size);
    while (size--)
        at[size] = next[size];
    return to;
}

int main(void);

void _start(void) {
    long code = main();
    ecall(93, code & 255, 0, 0);
    for (;;)
        ;
}
