// A road to a server on which each byte takes as many microseconds as are asked for, each way. Timers of Node know no less than a millisecond, and
// to look again and again instead takes the processor time that gateways and database are to be measured with.
//
// slow-road PORT MICROSECONDS: says at which port of its own it listens, and ends with its standard input.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST 4096
#define SECOND 1000000000L

struct chunk {
  struct chunk *next;
  long due;
  int to;
  ssize_t length;
  char bytes[65536];
};

/** The other end of each connection, by its number, and which ends have heard the last of it. */
static int other[MOST];
static char over[MOST];

static long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * SECOND + t.tv_nsec;
}

static struct sockaddr_in loopback(int port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return at;
}

static void watch(int epoll, int socket) {
  struct epoll_event event = {.events = EPOLLIN, .data.fd = socket};
  int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event);
}

static void take(int epoll, int listener, const struct sockaddr_in *server) {
  int client = accept(listener, NULL, NULL), road = socket(AF_INET, SOCK_STREAM, 0);
  if (client < 0 || road < 0 || client >= MOST || road >= MOST || connect(road, (void *)server, sizeof *server)) {
    if (client >= 0) close(client);
    if (road >= 0) close(road);
    return;
  }
  other[client] = road, other[road] = client;
  over[client] = over[road] = 0;
  watch(epoll, client), watch(epoll, road);
}

static void send_on(const struct chunk *chunk) {
  int to = chunk->to, from = other[to];
  for (ssize_t sent = 0; sent < chunk->length;) {
    ssize_t more = send(to, chunk->bytes + sent, chunk->length - sent, MSG_NOSIGNAL);
    if (more <= 0) break;
    sent += more;
  }
  if (chunk->length > 0) return;
  shutdown(to, SHUT_WR);
  over[to] = 1;
  // Nothing is on its way any more, either way.
  if (over[from]) close(to), close(from);
}

int main(int count, char **words) {
  if (count != 3) return 2;
  struct sockaddr_in server = loopback(atoi(words[1])), own = loopback(0);
  long delay = atol(words[2]) * 1000;
  socklen_t size = sizeof own;
  int listener = socket(AF_INET, SOCK_STREAM, 0), epoll = epoll_create1(0);
  if (bind(listener, (void *)&own, size) || listen(listener, 512) || getsockname(listener, (void *)&own, &size)) return 1;
  printf("%d\n", ntohs(own.sin_port));
  fflush(stdout);
  prctl(PR_SET_TIMERSLACK, 1);
  watch(epoll, listener);
  watch(epoll, 0);
  // One delay for all: what comes first is due first.
  struct chunk *first = NULL, **last = &first;
  for (;;) {
    struct timespec wait = {0}, *longest = NULL;
    if (first) {
      long left = first->due - now();
      if (left > 0) wait.tv_sec = left / SECOND, wait.tv_nsec = left % SECOND;
      longest = &wait;
    }
    struct epoll_event events[64];
    int many = epoll_pwait2(epoll, events, 64, longest, NULL);
    if (many < 0 && errno != EINTR) return 1;
    for (int i = 0; i < many; i++) {
      int from = events[i].data.fd;
      if (from == 0) return 0;
      if (from == listener) {
        take(epoll, listener, &server);
        continue;
      }
      struct chunk *chunk = malloc(sizeof *chunk);
      chunk->next = NULL, chunk->due = now() + delay, chunk->to = other[from];
      chunk->length = read(from, chunk->bytes, sizeof chunk->bytes);
      if (chunk->length <= 0) epoll_ctl(epoll, EPOLL_CTL_DEL, from, NULL);
      *last = chunk, last = &chunk->next;
    }
    for (long t = now(); first && first->due <= t;) {
      struct chunk *chunk = first;
      if (!(first = chunk->next)) last = &first;
      send_on(chunk);
      free(chunk);
    }
  }
}
