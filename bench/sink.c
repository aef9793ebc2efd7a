/* Where deliveries go: an HTTP/1.1 server that answers each request at once and remembers when.
 *
 *   sink PORT
 *
 * A path that begins with /hang is read and never answered; GET /stats tells what came since the
 * last GET /reset; all else is answered 204. A request with a `ce-time` header gives a latency: from
 * that time of day to its arrival. Times are those of CLOCK_MONOTONIC, which other programs on the
 * machine share. One thread, epoll, no allocation but one block a connection. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BUCKETS = 1 << 22, BUCKET_US = 10, REQUEST_BYTES = 1 << 15 }; /* latencies up to 41 s */

struct connection {
    int fd;
    size_t length;
    char buffer[REQUEST_BYTES + 1];
};

static uint32_t histogram[BUCKETS];
static uint64_t taken, held, timed;
static double first_s, last_s;
static int epoll_fd;

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fail(const char *what) {
    fprintf(stderr, "sink: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void reset(void) {
    memset(histogram, 0, sizeof histogram);
    taken = held = timed = 0;
    first_s = last_s = 0;
}

static double percentile_ms(double fraction) {
    uint64_t wanted = (uint64_t)((double)timed * fraction), seen = 0;
    for (uint64_t i = 0; i < BUCKETS; i++)
        if ((seen += histogram[i]) > wanted) return (double)(i * BUCKET_US) / 1000;
    return 0;
}

static const char *value_of(const char *head, const char *end, const char *name) {
    const char *found = memmem(head, (size_t)(end - head), name, strlen(name));
    return found ? found + strlen(name) : NULL;
}

static void note_latency(const char *head, const char *end) {
    static char last_second[20];
    static double last_value;
    const char *text = value_of(head, end, "\r\nce-time: "); /* 2026-11-27T10:00:00.123Z */
    if (!text || end - text < 24) return;
    if (memcmp(text, last_second, 19)) {
        struct tm t = {0};
        memcpy(last_second, text, 19);
        if (!strptime(last_second, "%Y-%m-%dT%H:%M:%S", &t)) fail("ce-time");
        last_value = (double)timegm(&t);
    }
    double took = seconds(CLOCK_REALTIME) - last_value - atof(text + 19);
    uint64_t bucket = took <= 0 ? 0 : (uint64_t)(took * 1e6) / BUCKET_US;
    histogram[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
    timed++;
}

static void say(int fd, const char *text, size_t length) {
    /* A client that went away is not our business. */
    if (send(fd, text, length, MSG_NOSIGNAL) < 0 && errno == EAGAIN) fail("send");
}

static void say_stats(int fd) {
    char body[512], answer[640];
    int length = snprintf(body, sizeof body,
                          "{\"taken\": %lu, \"held\": %lu, \"timed\": %lu, \"first_s\": %.6f, "
                          "\"last_s\": %.6f, \"p50_ms\": %.2f, \"p99_ms\": %.2f}",
                          taken, held, timed, first_s, last_s, percentile_ms(0.5), percentile_ms(0.99));
    length = snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", length, body);
    say(fd, answer, (size_t)length);
}

static void answer(int fd, const char *head, const char *end) {
    static const char done[] = "HTTP/1.1 204 No Content\r\n\r\n";
    if (!strncmp(head, "GET /stats", 10)) {
        say_stats(fd);
    } else if (!strncmp(head, "GET /reset", 10)) {
        reset();
        say(fd, done, sizeof done - 1);
    } else if (value_of(head, strchr(head, '\r'), " /hang")) {
        held++;
    } else {
        last_s = seconds(CLOCK_MONOTONIC);
        if (!taken++) first_s = last_s;
        note_latency(head, end);
        say(fd, done, sizeof done - 1);
    }
}

/* Bytes of the first whole request in the buffer; 0 when it is not whole yet. */
static size_t answer_one(struct connection *c, char *head, size_t length) {
    char *end = memmem(head, length, "\r\n\r\n", 4);
    if (!end) return 0;
    const char *declared = value_of(head, end, "\r\nContent-Length: ");
    size_t request_bytes = (size_t)(end + 4 - head) + (declared ? (size_t)atol(declared) : 0);
    if (request_bytes > length) return 0;
    answer(c->fd, head, end);
    return request_bytes;
}

static void forget(struct connection *c) {
    close(c->fd);
    free(c);
}

static void take(struct connection *c) {
    ssize_t n = recv(c->fd, c->buffer + c->length, REQUEST_BYTES - c->length, 0);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
        forget(c);
        return;
    }
    c->length += (size_t)n;
    c->buffer[c->length] = 0;
    size_t position = 0, length;
    while ((length = answer_one(c, c->buffer + position, c->length - position))) position += length;
    c->length -= position;
    memmove(c->buffer, c->buffer + position, c->length);
    if (c->length == REQUEST_BYTES) fail("a request is too long");
}

static void let_in(int listener) {
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK), one = 1;
    if (fd < 0) return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct connection *c = malloc(sizeof *c);
    if (!c) fail("memory");
    c->fd = fd;
    c->length = 0;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event)) fail("epoll_ctl");
}

static int listen_on(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&address, sizeof address)) fail("bind");
    if (listen(listener, 4096)) fail("listen");
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &event)) fail("epoll_ctl");
    return listener;
}

int main(int count, char **arguments) {
    if (count != 2) return fprintf(stderr, "see the head of sink.c\n"), 2;
    epoll_fd = epoll_create1(0);
    int listener = listen_on(atoi(arguments[1]));
    struct epoll_event events[256];
    for (;;) {
        int n = epoll_wait(epoll_fd, events, 256, -1);
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr) take(events[i].data.ptr);
            else let_in(listener);
        }
    }
}
