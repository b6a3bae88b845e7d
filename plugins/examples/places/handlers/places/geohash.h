/*
 * Geohashes: a place on the earth as letters, of which more say more exactly where.
 * What begins with the same letters is near each other.
 *
 * Nothing here knows of handlers or of JSON.
 */
#ifndef GEOHASH_H
#define GEOHASH_H

#define GEOHASH_MOST 9 /* letters: a cell of some five metres */

/* Writes the geohash of a place, and a zero byte, to out. */
void geohash(double lat, double lon, int letters, char *out);

/* How many letters cells may have at most that are nowhere narrower than a radius
 * around a place; 0 when even those of one letter are. */
int geohash_letters(double lat, double km);

/* Writes the cell of a place and those around it to out, each once, and gives how
 * many there are. */
int geohash_around(double lat, double lon, int letters, char out[9][GEOHASH_MOST + 1]);

/* The distance of two places on the surface of the earth. */
double distance_km(double lat1, double lon1, double lat2, double lon2);

#endif
