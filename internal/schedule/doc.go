// Package schedule says when a cron expression fires next in a time zone.
//
// Expressions have five fields, as in crontab(5), or are one of @hourly, @daily, @weekly,
// @monthly, @yearly. Where clocks are set forward, a time that is skipped fires when the gap ends.
// Where they are set back, a time that comes twice fires once, at the first of them. An expression
// for every hour goes on by real time: it fires in both hours.
package schedule
