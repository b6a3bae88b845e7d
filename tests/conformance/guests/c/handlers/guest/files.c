#include "guest.h"

static runner_file insert_document(runner_text title, runner_file scan) {
  runner_json *row = runner_row(runner_insert("Document", runner_object("title", runner_string(title), "scan", runner_file_json(scan), NULL)));
  return runner_as_file(runner_member(row, "scan"));
}

RUNNER_HANDLER(files) {
  runner_file scan = insert_document(runner_form_text("title"), runner_form_file("scan"));
  runner_file made = runner_file_create("note.md", "text/markdown", runner_t("a note ü"));
  runner_file note = insert_document(runner_t("note"), made);
  return runner_ok(runner_object(
      "text", runner_string(runner_file_read(scan)), "name", runner_string(scan.name), "type", runner_string(scan.type),
      "size", runner_int(scan.size), "note", runner_int(note.size),
      "other", runner_bool(runner_given(runner_form_file("other").id)), NULL));
}

RUNNER_HANDLER(sent) {
  runner_send_options options = {.status = 201, .disposition = "attachment", .name = "copy.txt", .cache = "private"};
  return runner_with_header(runner_send_file(runner_form_file(""), options), "x-sent", "yes");
}

RUNNER_HANDLER(linked) {
  runner_file scan = insert_document(runner_t("linked"), runner_form_file(""));
  runner_text link = runner_file_sign(scan, 600, "attachment", "copy.txt");
  return runner_ok(runner_object("link", runner_bool(link.len > 8 && strncmp(link.data, "/_files/", 8) == 0), NULL));
}
