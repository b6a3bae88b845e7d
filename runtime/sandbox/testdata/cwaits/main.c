// A program that waits for requests. It answers how often it has run, and the body.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define host(name) __attribute__((import_module("runner"), import_name(#name))) name
int host(request_next)(const char *handlers, int length);
int host(request_body)(int offset, char *room, int size);
int host(response_send)(int status, const char *body, int length);

static int runs;

int main(void) {
	char *started = strdup("started");
	while (request_next("", 0) >= 0) {
		char body[100], answer[200];
		int n = request_body(0, body, sizeof body);
		runs++;
		snprintf(answer, sizeof answer, "run %d of %s: %.*s", runs, started, n, body);
		response_send(200, answer, strlen(answer));
		free(started);
		started = strdup("used");
	}
	return 1;
}
