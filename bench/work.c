// A pipeline's source with known work: writes BLOCKS blocks of 64 KiB, and for each computes STEPS steps that the
// compiler can't omit. `bench/truth.py` measures how many steps make a slowdown.
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    static uint64_t block[8192];
    long blocks = argc > 1 ? atol(argv[1]) : 0, steps = argc > 2 ? atol(argv[2]) : 0;
    uint64_t x = 88172645463325252u;
    for (long n = 0; n < blocks; n++) {
        for (long step = 0; step < steps; step++)
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        // Not part of the block, so the output is the same for any number of steps.
        *(volatile uint64_t *)&x = x;
        for (size_t done = 0; done < sizeof block;) {
            ssize_t written = write(1, (char *)block + done, sizeof block - done);
            if (written <= 0)
                return 1;
            done += written;
        }
    }
    return x == 0;
}
