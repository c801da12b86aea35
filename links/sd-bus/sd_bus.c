/* Both ends of a D-Bus connection without a bus between them: signals one way, and method calls for round trips. */
#define _GNU_SOURCE
#include "pipemark_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#define PATH "/pipemark"
#define INTERFACE "org.pipemark.Link"

static int must(int result, const char *what) {
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, strerror(-result));
        exit(1);
    }
    return result;
}

/* A connected socket; the receiver listens. */
static int connected(struct pm_link *link) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%.90s/bus", link->directory);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (link->sender) {
        if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
            pm_fail("connect");
        return fd;
    }
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 1) != 0)
        pm_fail("bind");
    pm_bound(link);
    return accept4(fd, NULL, NULL, SOCK_CLOEXEC);
}

static bool check(struct pm_link *link, sd_bus_message *message) {
    const void *data;
    size_t length;
    must(sd_bus_message_read_array(message, 'y', &data, &length), "read_array");
    return pm_received(link, data, length);
}

int main(void) {
    struct pm_link link;
    sd_bus *bus;
    sd_id128_t id;
    unsigned char *block;
    pm_start(&link, NULL);
    int fd = connected(&link);
    must(sd_bus_new(&bus), "sd_bus_new");
    must(sd_bus_set_fd(bus, fd, fd), "sd_bus_set_fd");
    must(sd_id128_randomize(&id), "sd_id128_randomize");
    if (!link.sender)
        must(sd_bus_set_server(bus, 1, id), "sd_bus_set_server");
    must(sd_bus_start(bus), "sd_bus_start");
    if (link.sender)
        pm_bound(&link);
    pm_ready(&link);
    if (link.sender) {
        while ((block = pm_next(&link, NULL)) != NULL) {
            sd_bus_message *message = NULL, *reply = NULL;
            bool call = link.round_trips && !link.last;
            must(call ? sd_bus_message_new_method_call(bus, &message, NULL, PATH, INTERFACE, "Call")
                      : sd_bus_message_new_signal(bus, &message, PATH, INTERFACE, "Block"),
                 "message");
            must(sd_bus_message_append_array(message, 'y', block, link.block), "append_array");
            if (call) {
                must(sd_bus_call(bus, message, 0, NULL, &reply), "sd_bus_call");
                check(&link, reply);
            } else {
                must(sd_bus_send(bus, message, NULL), "sd_bus_send");
                must(sd_bus_flush(bus), "sd_bus_flush");
            }
            sd_bus_message_unref(message);
            sd_bus_message_unref(reply);
        }
    } else {
        for (bool more = true; more;) {
            sd_bus_message *message = NULL, *reply = NULL;
            must(sd_bus_process(bus, &message), "sd_bus_process");
            if (message == NULL) {
                must(sd_bus_wait(bus, UINT64_MAX), "sd_bus_wait");
                continue;
            }
            if (sd_bus_message_is_signal(message, INTERFACE, NULL) ||
                sd_bus_message_is_method_call(message, INTERFACE, NULL))
                more = check(&link, message);
            if (more && sd_bus_message_is_method_call(message, INTERFACE, NULL)) {
                must(sd_bus_message_new_method_return(message, &reply), "method_return");
                must(sd_bus_message_append_array(reply, 'y', pm_next(&link, NULL), link.block), "append_array");
                must(sd_bus_send(bus, reply, NULL), "sd_bus_send");
                sd_bus_message_unref(reply);
            }
            sd_bus_message_unref(message);
        }
    }
    pm_done(&link);
    sd_bus_unref(bus);
}
