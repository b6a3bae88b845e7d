// Calls the host's function request_param as often as its parameter n says: "imported" calls the import, "written"
// writes a message to the host's file and reads its answer.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define host(name) __attribute__((import_module("runner"), import_name(#name))) name
int host(request_next)(const char *handlers, int length);
int host(request_param)(const char *name, int length, char *buffer, int size);
int host(response_send)(int status, const char *body, int length);

int main(void) {
  int file = open("/runner/host", O_RDWR), which;
  while ((which = request_next("imported\nwritten", 16)) >= 0) {
    char text[100] = "";
    int size = request_param("n", 1, text, sizeof text - 1);
    for (int n = atoi(text); n > 0; n--) {
      if (which == 0) {
        if (request_param("n", 1, text, sizeof text) != size) abort();
        continue;
      }
      static const char message[] = "request_param 1\nn";
      if (write(file, message, sizeof message - 1) < 0 || read(file, text, sizeof text) < size) abort();
      if (memcmp(text, "ok ", 3) != 0) abort();
    }
    response_send(204, NULL, 0);
  }
}
