/* Both ends of a NATS link: a publisher and its subscribers, or a requester and a responder. */
#include "pipemark_link.h"

#include <errno.h>
#include <glob.h>
#include <nats/nats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void must(natsStatus status, const char *what) {
    if (status != NATS_OK) {
        fprintf(stderr, "%s: %s\n", what, natsStatus_GetText(status));
        exit(1);
    }
}

/* The address of the server, from the file that it writes once it listens. */
static const char *address(const struct pm_link *link) {
    static char text[4096];
    char pattern[300], *begin;
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*.ports", link->directory);
    for (int tries = 0; tries < 10000; tries++, usleep(1000)) {
        if (glob(pattern, 0, NULL, &found) != 0)
            continue;
        FILE *file = fopen(found.gl_pathv[0], "r");
        globfree(&found);
        if (file == NULL)
            continue;
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
        if ((begin = strstr(text, "nats://")) != NULL && strchr(begin, '"') != NULL) {
            *strchr(begin, '"') = '\0';
            return begin;
        }
    }
    errno = 0;
    pm_fail("the server has no port");
}

/* Receives one message and checks it. Replies to it in round trips. */
static bool receive(struct pm_link *link, natsConnection *nats, natsSubscription *subscription) {
    natsMsg *message;
    must(natsSubscription_NextMsg(&message, subscription, INT32_MAX), "NextMsg");
    bool more = pm_received(link, natsMsg_GetData(message), (size_t)natsMsg_GetDataLength(message));
    if (more && link->round_trips)
        must(natsConnection_Publish(nats, natsMsg_GetReply(message), pm_next(link, NULL), (int)link->block), "Publish");
    natsMsg_Destroy(message);
    return more;
}

int main(void) {
    struct pm_link link;
    natsConnection *nats;
    natsSubscription *subscription = NULL;
    unsigned char *block;
    pm_start(&link, NULL);
    natsOptions *options;
    must(natsOptions_Create(&options), "options");
    must(natsOptions_SetURL(options, address(&link)), "SetURL");
    /* By default, a thread sends what was published a while ago. */
    must(natsOptions_SetSendAsap(options, link.round_trips), "SetSendAsap");
    must(natsConnection_Connect(&nats, options), "connect");
    natsOptions_Destroy(options);
    if (!link.sender) {
        must(natsConnection_SubscribeSync(&subscription, nats, "there"), "SubscribeSync");
        must(natsSubscription_SetPendingLimits(subscription, -1, -1), "SetPendingLimits");
        must(natsConnection_Flush(nats), "Flush"); /* the server has the subscription now */
    }
    pm_bound(&link);
    pm_ready(&link);
    while (!link.sender && receive(&link, nats, subscription))
        ;
    while (link.sender && (block = pm_next(&link, NULL)) != NULL) {
        natsMsg *reply = NULL;
        if (!link.round_trips || link.last) {
            must(natsConnection_Publish(nats, "there", block, (int)link.block), "Publish");
        } else {
            must(natsConnection_Request(&reply, nats, "there", block, (int)link.block, INT32_MAX), "Request");
            pm_received(&link, natsMsg_GetData(reply), (size_t)natsMsg_GetDataLength(reply));
            natsMsg_Destroy(reply);
        }
    }
    if (link.sender)
        must(natsConnection_Flush(nats), "Flush");
    pm_done(&link);
    natsSubscription_Destroy(subscription);
    natsConnection_Destroy(nats);
    nats_Close();
}
