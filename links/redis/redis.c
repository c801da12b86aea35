/* Both ends of a Redis link. The sender waits for the server's answer to each command, as most clients do. A list is
 * popped by the receiver with BLPOP; its length is limited by the sender, which gets it in each answer. */
#include "pipemark_link.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static redisReply *must(redisContext *redis, redisReply *reply) {
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR) {
        fprintf(stderr, "redis: %s\n", reply != NULL ? reply->str : redis->errstr);
        exit(1);
    }
    return reply;
}

static void push(struct pm_link *link, redisContext *redis, const char *list, const unsigned char *block,
                 bool publishes) {
    long long most = atoll(pm_option(link, "queue", "1000")), fits = (64 << 20) / (long long)link->block;
    const char *command = publishes ? "PUBLISH %s %b" : "RPUSH %s %b";
    redisReply *reply = must(redis, redisCommand(redis, command, list, block, link->block));
    long long length = publishes ? 0 : reply->integer;
    freeReplyObject(reply);
    most = most < fits ? most : fits > 2 ? fits : 2;
    while (length > most) {
        usleep(100);
        reply = must(redis, redisCommand(redis, "LLEN %s", list));
        length = reply->integer;
        freeReplyObject(reply);
    }
}

/* Receives one message, and checks it. */
static bool pop(struct pm_link *link, redisContext *redis, const char *list, bool subscribed) {
    redisReply *reply = NULL;
    if (!subscribed)
        reply = must(redis, redisCommand(redis, "BLPOP %s 0", list));
    else if (redisGetReply(redis, (void **)&reply) != REDIS_OK)
        must(redis, NULL);
    redisReply *message = reply->element[reply->elements - 1];
    bool more = pm_received(link, message->str, message->len);
    freeReplyObject(reply);
    return more;
}

int main(void) {
    struct pm_link link;
    char path[300];
    unsigned char *block;
    pm_start(&link, NULL);
    snprintf(path, sizeof path, "%s/redis.sock", link.directory);
    redisContext *redis = redisConnectUnix(path), *reading = redisConnectUnix(path);
    if (redis == NULL || redis->err != 0 || reading == NULL || reading->err != 0)
        errno = 0, pm_fail("redis can't be reached");
    bool pubsub = strcmp(pm_option(&link, "pattern", "list"), "pubsub") == 0;
    if (link.receivers > 1 && !pubsub)
        errno = 0, pm_fail("an element of a list goes to one receiver; use redis:pattern=pubsub");
    const char *in = link.sender ? "back" : "there";
    if (pubsub && (!link.sender || link.round_trips))
        freeReplyObject(must(reading, redisCommand(reading, "SUBSCRIBE %s", in)));
    pm_bound(&link);
    pm_ready(&link);
    if (link.sender) {
        while ((block = pm_next(&link, NULL)) != NULL) {
            push(&link, redis, "there", block, pubsub);
            if (link.round_trips && !link.last)
                pop(&link, reading, "back", pubsub);
        }
    } else {
        while (pop(&link, reading, "there", pubsub))
            if (link.round_trips)
                push(&link, redis, "back", pm_next(&link, NULL), pubsub);
    }
    pm_done(&link);
    redisFree(redis);
    redisFree(reading);
}
