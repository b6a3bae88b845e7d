/* The handlers of places.schema. */
#include "geohash.h"
#include "runner.h"

RUNNER_HANDLER(createPlace) {
  runner_json *in = runner_body(); /* checked against the schema's input type */
  double lat = runner_as_number(runner_member(in, "lat"), 0), lon = runner_as_number(runner_member(in, "lon"), 0);
  char cell[GEOHASH_MOST + 1];
  geohash(lat, lon, GEOHASH_MOST, cell);
  runner_json *row = runner_row(runner_insert("Place", runner_object(
      "name", runner_member(in, "name"), "lat", runner_number(lat), "lon", runner_number(lon), "cell", runner_str(cell), NULL)));
  const char *id = runner_as_text(runner_member(row, "id")).data;
  return runner_created(row, runner_format("/v1/places/%s", id ? id : ""));
}

RUNNER_HANDLER(getPlace) { return runner_ok_row(runner_get("Place", runner_param("id"))); }

RUNNER_HANDLER(deletePlace) {
  if (runner_count(runner_where(runner_remove("Place"), "id", "=", runner_string(runner_param("id")))) == 0)
    return runner_not_found("there is no such place");
  return runner_no_content();
}

/* A number of the query within bounds; false when it is not valid. */
static bool number(const char *name, double low, double high, double *value) {
  runner_text text = runner_query_value(name);
  char *end;
  if (text.len == 0) return false;
  *value = strtod(text.data, &end);
  return end == text.data + text.len && *value >= low && *value <= high;
}

typedef struct found {
  runner_json *row;
  double km;
} found;

static int by_distance(const void *a, const void *b) {
  double x = ((const found *)a)->km, y = ((const found *)b)->km;
  return (x > y) - (x < y);
}

#define MOST 500 /* places that are sorted */

/* Adds the places of a cell that are within a radius. Returns false when there are more
 * than MOST. */
static bool collect(const char *cell, double lat, double lon, double km, found *near, int *n) {
  runner_text cursor = {0};
  do {
    runner_op *q = runner_limit(runner_select(runner_query("Place"), "id", "name", "lat", "lon"), 1000);
    if (*cell) runner_where(q, "cell", "startsWith", runner_str(cell));
    RUNNER_EACH(row, runner_page(runner_after(q, cursor), &cursor)) {
      double far = distance_km(lat, lon, runner_as_number(runner_member(row, "lat"), 0), runner_as_number(runner_member(row, "lon"), 0));
      if (far > km) continue;
      if (*n == MOST) return false;
      near[*n].row = row;
      near[(*n)++].km = far;
    }
  } while (runner_given(cursor));
  return true;
}

/* GET /v1/places/near?lat=52.52&lon=13.40&km=5: the places within this distance,
 * nearest first. */
RUNNER_HANDLER(nearPlaces) {
  double lat, lon, km = 1;
  if (!number("lat", -90, 90, &lat) || !number("lon", -180, 180, &lon)) return runner_bad_request("lat and lon must be degrees");
  if (runner_given(runner_query_value("km")) && !number("km", 0, 1000, &km)) return runner_bad_request("km must be from 0 to 1000");

  char cells[9][GEOHASH_MOST + 1] = {""};
  int letters = geohash_letters(lat, km), count = letters ? geohash_around(lat, lon, letters, cells) : 1, n = 0;
  found *near = runner_alloc(MOST * sizeof *near);
  for (int i = 0; i < count; i++)
    if (!collect(cells[i], lat, lon, km, near, &n)) return runner_error(422, "more than %d places are there: ask for fewer km", MOST);

  qsort(near, (size_t)n, sizeof *near, by_distance);
  runner_json *places = runner_array();
  for (int i = 0; i < n; i++) runner_push(places, runner_put(near[i].row, "km", runner_number(round(near[i].km * 1000) / 1000)));
  return runner_ok(places);
}
