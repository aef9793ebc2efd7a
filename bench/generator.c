/* Load for any protocol whose replies end in a fixed number of newlines.
 *
 *   generator HOST PORT CONNECTIONS WINDOW WARM_UP_MS MEASURE_MS NEWLINES_PER_REPLY REQUESTS_FILE
 *
 * Each connection keeps WINDOW requests in flight; connection i sends request i % count of the
 * file (each: length as 4 bytes, little endian, then its bytes). Replies come in order, so a ring of
 * send times per connection gives each its latency. A reply that begins with '-' (Redis) or "ERR" is
 * an error. One thread, epoll, no allocation while measuring. Prints one JSON object. */
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

enum { BUCKETS = 1 << 22, READ_BYTES = 1 << 18 }; /* one bucket a microsecond: up to 4.2 s */

struct connection {
    int fd;
    char *block;          /* the request, repeated `window` times */
    size_t request_bytes;
    size_t unsent_bytes;  /* of requests already counted as in flight */
    size_t sent_position; /* within one request */
    int in_flight, newlines, at_start, waits_for_write;
    uint64_t *sent_at;    /* ring of `window` */
    int head, tail;
};

static uint32_t histogram[BUCKETS];
static uint64_t replies, errors, longest_us;
static int measuring, window, newlines_per_reply, epoll_fd;

static uint64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void fail(const char *what) {
    fprintf(stderr, "generator: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void watch(struct connection *c, int write) {
    if (c->waits_for_write == write) return;
    struct epoll_event event = {.events = EPOLLIN | (write ? EPOLLOUT : 0), .data.ptr = c};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &event)) fail("epoll_ctl");
    c->waits_for_write = write;
}

static void fill(struct connection *c, uint64_t now) {
    for (; c->in_flight < window; c->in_flight++) {
        c->sent_at[c->head] = now;
        c->head = (c->head + 1) % window;
        c->unsent_bytes += c->request_bytes;
    }
    while (c->unsent_bytes) {
        size_t room = c->request_bytes * (size_t)window - c->sent_position;
        size_t length = c->unsent_bytes < room ? c->unsent_bytes : room;
        ssize_t n = send(c->fd, c->block + c->sent_position, length, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) break;
        if (n < 0) fail("send");
        c->unsent_bytes -= (size_t)n;
        c->sent_position = (c->sent_position + (size_t)n) % c->request_bytes;
    }
    watch(c, c->unsent_bytes > 0);
}

static void take(struct connection *c) {
    static char buffer[READ_BYTES];
    ssize_t n = recv(c->fd, buffer, sizeof buffer, 0);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) fail("the server closed the connection");
    uint64_t now = now_us();
    for (ssize_t i = 0; i < n; i++) {
        if (c->at_start && (buffer[i] == '-' || buffer[i] == 'E')) errors++;
        c->at_start = 0;
        if (buffer[i] != '\n' || ++c->newlines < newlines_per_reply) continue;
        c->newlines = 0;
        c->at_start = 1;
        uint64_t took = now - c->sent_at[c->tail];
        c->tail = (c->tail + 1) % window;
        c->in_flight--;
        if (!measuring) continue;
        replies++;
        histogram[took < BUCKETS ? took : BUCKETS - 1]++;
        if (took > longest_us) longest_us = took;
    }
    fill(c, now);
}

static uint64_t percentile(double fraction) {
    uint64_t wanted = (uint64_t)((double)replies * fraction), seen = 0;
    for (uint64_t i = 0; i < BUCKETS; i++)
        if ((seen += histogram[i]) > wanted) return i;
    return longest_us;
}

static void open_connection(struct connection *c, struct sockaddr_in *address, const char *request,
                            uint32_t request_bytes) {
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)address, sizeof *address)) fail("connect");
    int one = 1;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    c->request_bytes = request_bytes;
    c->block = malloc((size_t)request_bytes * (size_t)window);
    c->sent_at = calloc((size_t)window, sizeof *c->sent_at);
    if (!c->block || !c->sent_at) fail("memory");
    for (int i = 0; i < window; i++)
        memcpy(c->block + (size_t)i * request_bytes, request, request_bytes);
    c->at_start = 1;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &event)) fail("epoll_ctl");
}

static void open_all(struct connection *all, int count, char **arguments) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(arguments[2]))};
    if (inet_pton(AF_INET, arguments[1], &address.sin_addr) != 1) fail("address");
    for (int i = 0; i < count;) {
        FILE *file = fopen(arguments[8], "rb");
        if (!file) fail(arguments[8]);
        uint32_t bytes;
        while (i < count && fread(&bytes, sizeof bytes, 1, file) == 1) {
            char *request = malloc(bytes);
            if (!request || fread(request, 1, bytes, file) != bytes) fail("requests file");
            open_connection(&all[i++], &address, request, bytes);
            free(request);
        }
        fclose(file);
        if (i == 0) fail("no requests");
    }
}

static void run_until(uint64_t end) {
    struct epoll_event events[256];
    for (uint64_t now = now_us(); now < end; now = now_us()) {
        int n = epoll_wait(epoll_fd, events, 256, (int)((end - now) / 1000 + 1));
        for (int i = 0; i < n; i++) {
            struct connection *c = events[i].data.ptr;
            if (events[i].events & EPOLLOUT) fill(c, now_us());
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) take(c);
        }
    }
}

int main(int count, char **arguments) {
    if (count != 9) return fprintf(stderr, "see the head of generator.c\n"), 2;
    int connections = atoi(arguments[3]);
    window = atoi(arguments[4]);
    newlines_per_reply = atoi(arguments[7]);
    epoll_fd = epoll_create1(0);
    struct connection *all = calloc((size_t)connections, sizeof *all);
    if (!all || epoll_fd < 0) fail("set-up");
    open_all(all, connections, arguments);
    for (int i = 0; i < connections; i++) fill(&all[i], now_us());
    run_until(now_us() + (uint64_t)atoi(arguments[5]) * 1000);
    measuring = 1;
    uint64_t begun = now_us();
    run_until(begun + (uint64_t)atoi(arguments[6]) * 1000);
    double seconds = (double)(now_us() - begun) / 1e6;
    printf("{\"replies\": %lu, \"errors\": %lu, \"seconds\": %.6f, \"p50_us\": %lu, \"p99_us\": %lu, "
           "\"p999_us\": %lu, \"longest_us\": %lu}\n",
           replies, errors, seconds, percentile(0.5), percentile(0.99), percentile(0.999), longest_us);
    return 0;
}
