/*
 * Geohashes: a position on the earth as letters; more letters are more precise. Positions
 * with the same first letters are near each other.
 *
 * Independent of handlers and JSON.
 */
#ifndef GEOHASH_H
#define GEOHASH_H

#define GEOHASH_MOST 9 /* letters: a cell of some five metres */

/* Writes the geohash of a position, and a zero byte, to out. */
void geohash(double lat, double lon, int letters, char *out);

/* The most letters for which cells around a position are at least as wide as the
 * radius; 0 when cells of one letter are too narrow. */
int geohash_letters(double lat, double km);

/* Writes the cell of a position and the cells around it to out, each once, and returns
 * their number. */
int geohash_around(double lat, double lon, int letters, char out[9][GEOHASH_MOST + 1]);

/* The distance of two positions on the surface of the earth. */
double distance_km(double lat1, double lon1, double lat2, double lon2);

#endif
