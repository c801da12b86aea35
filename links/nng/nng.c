/* Both ends of an nng link. The receiver takes each message over with NNG_FLAG_ALLOC, as the manual recommends. */
#include "pipemark_link.h"

#include <nng/nng.h>
#include <nng/protocol/pipeline0/pull.h>
#include <nng/protocol/pipeline0/push.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int error, const char *what) {
    if (error != 0) {
        fprintf(stderr, "%s: %s\n", what, nng_strerror(error));
        exit(1);
    }
}

/* The receiver listens; over tcp on a port of the system's choice, which it writes to a file. */
static void connect_ends(const struct pm_link *link, nng_socket socket) {
    char url[300], file[300];
    bool tcp = strcmp(pm_option(link, "transport", "ipc"), "tcp") == 0;
    snprintf(file, sizeof file, "%s/url", link->directory);
    if (!link->sender) {
        nng_listener listener;
        nng_sockaddr address;
        snprintf(url, sizeof url, tcp ? "tcp://127.0.0.1:0" : "ipc://%s/socket", link->directory);
        must(nng_listen(socket, url, &listener, 0), url);
        if (tcp) {
            must(nng_listener_get_addr(listener, NNG_OPT_LOCADDR, &address), "NNG_OPT_LOCADDR");
            const unsigned char *port = (const unsigned char *)&address.s_in.sa_port; /* in network order */
            snprintf(url, sizeof url, "tcp://127.0.0.1:%d", port[0] * 256 + port[1]);
        }
        FILE *to = fopen(file, "w");
        if (to == NULL || fputs(url, to) < 0 || fclose(to) != 0)
            pm_fail(file);
    } else {
        FILE *from = fopen(file, "r");
        if (from == NULL || fgets(url, sizeof url, from) == NULL)
            pm_fail(file);
        must(nng_dial(socket, url, NULL, 0), url);
    }
}

static bool receive(struct pm_link *link, nng_socket socket) {
    void *data;
    size_t length;
    must(nng_recv(socket, &data, &length, NNG_FLAG_ALLOC), "nng_recv");
    bool more = pm_received(link, data, length);
    nng_free(data, length);
    return more;
}

int main(void) {
    struct pm_link link;
    nng_socket socket;
    pm_start(&link, NULL);
    if (link.round_trips)
        must(link.sender ? nng_req0_open(&socket) : nng_rep0_open(&socket), "nng_open");
    else
        must(link.sender ? nng_push0_open(&socket) : nng_pull0_open(&socket), "nng_open");
    must(nng_socket_set_size(socket, NNG_OPT_RECVMAXSZ, 0), "NNG_OPT_RECVMAXSZ");
    connect_ends(&link, socket);
    pm_bound(&link);
    pm_ready(&link);
    unsigned char *block;
    if (link.sender) {
        while ((block = pm_next(&link, NULL)) != NULL) {
            must(nng_send(socket, block, link.block, 0), "nng_send");
            if (link.round_trips && !link.last)
                receive(&link, socket);
        }
    } else {
        while (receive(&link, socket))
            if (link.round_trips)
                must(nng_send(socket, pm_next(&link, NULL), link.block, 0), "nng_send");
    }
    pm_done(&link);
    nng_close(socket); /* drops what is still queued */
}
