/* Both ends of a ZeroMQ link. The sockets and calls are those of ZeroMQ's own perf/local_thr and perf/local_lat. With
 * several receivers, the sender publishes. It is an XPUB socket, which gets the subscriptions as messages, so that it
 * can wait for them, and which waits for slow subscribers instead of dropping messages (ZMQ_XPUB_NODROP). Otherwise the
 * receiver binds. */
#include "pipemark_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

/* The most bytes that a queue may hold, where its length in messages would allow more. */
enum { MAX_QUEUED = 64 << 20 };

static void must(int result, const char *what) {
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, zmq_strerror(zmq_errno()));
        exit(1);
    }
}

/* Binds; over tcp to a port of the system's choice. Writes the endpoint to a file for the other ends. */
static void bind_end(const struct pm_link *link, void *socket) {
    char endpoint[300], file[300], whole[300];
    size_t length = sizeof endpoint;
    bool tcp = strcmp(pm_option(link, "transport", "ipc"), "tcp") == 0;
    snprintf(endpoint, sizeof endpoint, tcp ? "tcp://127.0.0.1:*" : "ipc://%s/socket", link->directory);
    must(zmq_bind(socket, endpoint), endpoint);
    must(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &length), "ZMQ_LAST_ENDPOINT");
    snprintf(file, sizeof file, "%s/unfinished", link->directory);
    snprintf(whole, sizeof whole, "%s/endpoint", link->directory);
    FILE *to = fopen(file, "w");
    if (to == NULL || fputs(endpoint, to) < 0 || fclose(to) != 0 || rename(file, whole) != 0)
        pm_fail(file);
}

static void connect_end(const struct pm_link *link, void *socket) {
    char endpoint[300], file[300];
    FILE *from = NULL;
    snprintf(file, sizeof file, "%s/endpoint", link->directory);
    for (int tries = 0; tries < 10000 && (from = fopen(file, "r")) == NULL; tries++)
        usleep(1000);
    if (from == NULL || fgets(endpoint, sizeof endpoint, from) == NULL)
        pm_fail(file);
    must(zmq_connect(socket, endpoint), endpoint);
}

int main(void) {
    struct pm_link link;
    pm_start(&link, NULL);
    void *context = zmq_ctx_new();
    bool publishes = link.receivers > 1;
    int kind = link.round_trips ? (link.sender ? ZMQ_REQ : ZMQ_REP)
               : publishes      ? (link.sender ? ZMQ_XPUB : ZMQ_SUB)
                                : (link.sender ? ZMQ_PUSH : ZMQ_PULL);
    void *socket = zmq_socket(context, kind);
    int queue = atoi(pm_option(&link, "queue", "1000")), fits = (int)(MAX_QUEUED / link.block);
    queue = queue < fits ? queue : fits > 2 ? fits : 2;
    must(zmq_setsockopt(socket, ZMQ_SNDHWM, &queue, sizeof queue), "ZMQ_SNDHWM");
    must(zmq_setsockopt(socket, ZMQ_RCVHWM, &queue, sizeof queue), "ZMQ_RCVHWM");
    zmq_msg_t message;
    zmq_msg_init(&message);
    unsigned char *block;
    if (publishes && !link.sender)
        must(zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0), "ZMQ_SUBSCRIBE");
    for (int option = 0; publishes && link.sender && option < 2; option++)
        must(zmq_setsockopt(socket, (int[]){ZMQ_XPUB_NODROP, ZMQ_XPUB_VERBOSE}[option], &(int){1}, sizeof(int)),
             "zmq_setsockopt");
    bool binds = publishes == link.sender;
    if (binds)
        bind_end(&link, socket);
    pm_bound(&link);
    if (!binds)
        connect_end(&link, socket);
    for (unsigned subscriptions = 0; link.sender && publishes && subscriptions < link.receivers; subscriptions++)
        must(zmq_msg_recv(&message, socket, 0), "zmq_msg_recv");
    pm_ready(&link);

    if (link.sender) {
        while ((block = pm_next(&link, NULL)) != NULL) {
            must(zmq_send(socket, block, link.block, 0), "zmq_send");
            if (link.round_trips && !link.last) {
                must(zmq_msg_recv(&message, socket, 0), "zmq_msg_recv");
                pm_received(&link, zmq_msg_data(&message), zmq_msg_size(&message));
            }
        }
    } else {
        for (;;) {
            must(zmq_msg_recv(&message, socket, 0), "zmq_msg_recv");
            if (!pm_received(&link, zmq_msg_data(&message), zmq_msg_size(&message)))
                break;
            if (link.round_trips)
                must(zmq_send(socket, pm_next(&link, NULL), link.block, 0), "zmq_send");
        }
    }
    zmq_msg_close(&message);
    pm_done(&link); /* first, because zmq_ctx_term can lose the last 8 KiB, whatever ZMQ_LINGER is */
    zmq_close(socket);
    zmq_ctx_term(context);
}
