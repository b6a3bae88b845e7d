// A program that waits for requests, in tests of releases and jobs. Its answers are those of the guest release.wat, with
// one of its marks in the code and one in the file mark.txt, which it reads at its start. The file start.txt, if there is
// one, says how the start goes.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define host(name) __attribute__((import_module("runner"), import_name(#name))) name
int host(request_next)(const char *handlers, int length);
int host(request_body)(int offset, char *buffer, int size);
int host(response_send)(int status, const char *body, int length);
int host(context)(char *buffer, int size);
int host(call)(const char *operation, int length, const char *arguments, int size);
int host(call_result)(int offset, char *buffer, int size);

static const volatile char code[] = "mark of the code: 0000"; // a test replaces the digits
static char body[4096], about[8192], reply[16384];

// text reads a file of the program.
static int text(const char *name, char *buffer, int size) {
	int fd = open(name, O_RDONLY), n = fd < 0 ? 0 : read(fd, buffer, size - 1);
	if (fd >= 0) close(fd);
	buffer[n < 0 ? 0 : n] = 0;
	return n > 0;
}

static void start(const char *how) {
	if (strcmp(how, "slow") == 0) {
		usleep(300000);
		return;
	}
	fprintf(stderr, "there is no configuration\n");
	if (strcmp(how, "trap") == 0) __builtin_trap();
	if (strcmp(how, "exit") == 0) exit(3);
	for (volatile int i = 0;; i++);
}

// insert inserts a row, and returns whether it was inserted.
static int insert(const char *arguments) {
	return call("insert", 6, arguments, strlen(arguments)) >= 0;
}

// attempt is the attempt of a job's run.
static int attempt(void) {
	const char *found = strstr(about, "\"attempt\":");
	return found ? atoi(found + 10) : 0;
}

int main(void) {
	char mark[8], how[8], row[512];
	if (!text("/app/mark.txt", mark, sizeof mark)) return 2;
	if (text("/app/start.txt", how, sizeof how)) start(how);
	for (int visits = 1;; visits++) {
		int which = request_next("release\nnote\nwrite\nfails\ntick", 29), status = 200;
		body[request_body(0, body, sizeof body - 1)] = 0;
		about[context(about, sizeof about - 1)] = 0;
		switch (which) {
		case 1: // inserts a row, with the body as arguments
			if (!insert(body)) status = 299;
			body[call_result(0, body, sizeof body - 1)] = 0;
			break;
		case 3: // a job that traps after its insert, but in its second run
		case 2: // a job
		case 4: // a job of a schedule
			snprintf(row, sizeof row, "{\"into\":\"Entry\",\"values\":{\"text\":\"%s of %s, visit %d, attempt %d\"}}",
				which == 2 ? "write" : which == 3 ? "fails" : "tick", mark, visits, attempt());
			if (!insert(row)) status = 500;
			if (which == 3 && attempt() < 2) __builtin_trap();
		}
		if (visits != 1) status = 500; // each request continues from the start
		int n = snprintf(reply, sizeof reply, "[\"%.4s\",\"%s\",%s,%s]", (const char *)code + sizeof code - 5, mark, about, body);
		response_send(status, reply, n);
	}
}
