#include "geohash.h"

#include <math.h>
#include <string.h>

#define KM_PER_DEGREE 111.194926644559 /* of a great circle */
#define EARTH_KM 6371.0
#define RADIANS (3.14159265358979323846 / 180)

/* Bits of a geohash halve longitude and latitude alternately; five bits are a letter. */
void geohash(double lat, double lon, int letters, char *out) {
  static const char alphabet[] = "0123456789bcdefghjkmnpqrstuvwxyz";
  double low[2] = {-180, -90}, high[2] = {180, 90}, at[2] = {lon, lat};
  for (int i = 0, side = 0; i < letters; i++) {
    int letter = 0;
    for (int bit = 0; bit < 5; bit++, side = !side) {
      double middle = (low[side] + high[side]) / 2;
      letter = letter * 2 + (at[side] >= middle);
      *(at[side] >= middle ? &low[side] : &high[side]) = middle;
    }
    out[i] = alphabet[letter];
  }
  out[letters] = 0;
}

static double cell_height(int letters) { return 180 / ldexp(1, 5 * letters / 2); }
static double cell_width(int letters) { return 360 / ldexp(1, (5 * letters + 1) / 2); }

int geohash_letters(double lat, double km) {
  for (int letters = GEOHASH_MOST; letters > 0; letters--) {
    double height = cell_height(letters), edge = fabs(lat) + 2 * height; /* the narrow side of the cells around */
    if (edge < 90 && height * KM_PER_DEGREE >= km && cell_width(letters) * KM_PER_DEGREE * cos(edge * RADIANS) >= km) return letters;
  }
  return 0;
}

int geohash_around(double lat, double lon, int letters, char out[9][GEOHASH_MOST + 1]) {
  int n = 0;
  for (int dy = -1; dy <= 1; dy++) {
    for (int dx = -1; dx <= 1; dx++) {
      double y = lat + dy * cell_height(letters), x = lon + dx * cell_width(letters);
      if (y < -90 || y > 90) continue;
      x = x < -180 ? x + 360 : x >= 180 ? x - 360 : x; /* the date line */
      geohash(y, x, letters, out[n]);
      int seen = 0;
      while (strcmp(out[seen], out[n]) != 0) seen++;
      n += seen == n;
    }
  }
  return n;
}

/* Haversines are precise for small distances too. */
double distance_km(double lat1, double lon1, double lat2, double lon2) {
  double dy = sin((lat2 - lat1) * RADIANS / 2), dx = sin((lon2 - lon1) * RADIANS / 2);
  double h = dy * dy + cos(lat1 * RADIANS) * cos(lat2 * RADIANS) * dx * dx;
  return 2 * EARTH_KM * asin(sqrt(h < 1 ? h : 1));
}
