// A program that draws random bytes and seeds a generator before it waits for requests, and draws after that.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define host(name) __attribute__((import_module("runner"), import_name(#name))) name
int host(request_next)(const char *handlers, int length);
int host(response_send)(int status, const char *body, int length);

static unsigned char token[4];

static void draw_token(void) { getentropy(token, sizeof token); }

int main(void) {
	char answer[100];
	draw_token();
	srand(time(NULL));
	while (request_next("draw", 4) == 0) {
		unsigned char fresh[4];
		getentropy(fresh, sizeof fresh);
		int n = snprintf(answer, sizeof answer, "%02x%02x%02x%02x %d %02x%02x%02x%02x", token[0], token[1], token[2], token[3],
			rand(), fresh[0], fresh[1], fresh[2], fresh[3]);
		response_send(200, answer, n);
	}
}
