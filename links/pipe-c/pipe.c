/* Both ends of a named pipe, or of two for round trips. */
#include "pipemark_link.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *path_of(const struct pm_link *link, const char *name) {
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", link->directory, name);
    return path;
}

static int open_end(const struct pm_link *link, const char *name, bool writes) {
    int fd = open(path_of(link, name), writes ? O_WRONLY : O_RDONLY); /* waits for the other end */
    return fd >= 0 ? fd : (pm_fail(name), -1);
}

static void write_block(int fd, const struct pm_link *link, const unsigned char *block) {
    for (size_t done = 0; done < link->block;) {
        ssize_t written = write(fd, block + done, link->block - done);
        if (written < 0)
            pm_fail("write");
        done += (size_t)written;
    }
}

/* Reads at most a block, or all of one if `whole`. Returns the number of bytes, 0 at the end. */
static size_t read_block(int fd, const struct pm_link *link, unsigned char *block, bool whole) {
    size_t done = 0;
    do {
        ssize_t got = read(fd, block + done, link->block - done);
        if (got < 0)
            pm_fail("read");
        if (got == 0)
            return done;
        done += (size_t)got;
    } while (whole && done < link->block);
    return done;
}

int main(void) {
    struct pm_link link;
    pm_start(&link, NULL);
    if (!link.sender && (mkfifo(path_of(&link, "there"), 0600) != 0 || mkfifo(path_of(&link, "back"), 0600) != 0))
        pm_fail("mkfifo");
    pm_bound(&link);
    int there = open_end(&link, "there", link.sender);
    int back = link.round_trips ? open_end(&link, "back", !link.sender) : -1;
    unsigned char *received = aligned_alloc(4096, (link.block + 4095) / 4096 * 4096), *block;
    size_t got;
    pm_ready(&link);
    if (link.sender) {
        while ((block = pm_next(&link, NULL)) != NULL) {
            write_block(there, &link, block);
            if (link.round_trips && (got = read_block(back, &link, received, true)) > 0)
                pm_received(&link, received, got);
        }
        close(there);
    } else {
        while ((got = read_block(there, &link, received, link.round_trips)) > 0) {
            pm_received(&link, received, got);
            if (link.round_trips)
                write_block(back, &link, pm_next(&link, NULL));
        }
    }
    pm_done(&link);
}
