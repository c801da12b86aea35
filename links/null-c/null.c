/* Both ends of a link without a transfer: the sender drops its blocks, and the receiver has one block to check. */
#include "pipemark_link.h"

int main(void) {
    struct pm_link link;
    pm_start(&link, NULL);
    pm_ready(&link);
    unsigned char *block = pm_next(&link, NULL);
    if (link.sender)
        while (pm_next(&link, NULL) != NULL)
            ;
    else
        while (pm_received(&link, block, link.block))
            ;
    pm_done(&link);
}
