// A program that waits for requests of two handlers. It answers with what it found at its start: an argument, a variable
// and a file. It counts its requests, calls the host through its file, and has "fail" trap.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int file;
static char answer[4096];

// call writes a message, and returns what its answer has behind the first line.
static const char *call(const char *head, const char *data) {
	char message[4096];
	int n = snprintf(message, sizeof message, "%s %zu\n%s", head, strlen(data), data);
	if (write(file, message, n) != n) abort();
	n = read(file, answer, sizeof answer - 1);
	if (n < 0) abort();
	answer[n] = 0;
	return strchr(answer, '\n') + 1;
}

int main(int argc, char **argv) {
	char text[100] = "", reply[4096];
	FILE *found = fopen("/app/greeting.txt", "r");
	if (!found || !fgets(text, sizeof text, found)) return 2;
	file = open("/runner/host", O_RDWR);
	for (int visits = 1;; visits++) {
		int fail = atoi(call("request_next", "visit\nfail"));
		if (fail) __builtin_trap();
		char name[100];
		snprintf(name, sizeof name, "%s", call("request_param", "name"));
		snprintf(reply, sizeof reply, "%s %s, %s, %d of %s", text, name, getenv("LANGUAGE"), visits, argv[1]);
		call("response_send 200", reply);
	}
}
