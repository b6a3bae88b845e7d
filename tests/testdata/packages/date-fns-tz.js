import { formatInTimeZone, fromZonedTime, getTimezoneOffset, toZonedTime } from "date-fns-tz";

export const run = () => [formatInTimeZone(new Date("2026-03-29T01:30:00Z"), "Europe/Berlin", "yyyy-MM-dd HH:mm:ss zzz XXX"), formatInTimeZone("2026-11-01T05:30:00Z", "America/New_York", "PPPPpppp"),
  fromZonedTime("2026-10-25 02:30:00", "Europe/Berlin").toISOString(), toZonedTime("2026-07-01T00:00:00Z", "Australia/Lord_Howe").toISOString(), getTimezoneOffset("Asia/Kathmandu")];
