import { DateTime, Duration, IANAZone, Info, Interval } from "luxon";

export const run = () => {
  const at = DateTime.fromISO("2026-03-28T12:00:00", { zone: "Europe/Berlin", locale: "en-US" });
  const next = at.plus({ days: 1 });
  return [next.toISO(), next.toLocaleString(DateTime.DATETIME_FULL), next.setZone("America/New_York").toFormat("cccc, d LLLL yyyy HH:mm ZZZZ z"), at.setLocale("en-GB").toLocaleString(DateTime.DATE_MED_WITH_WEEKDAY),
    next.toRelative({ base: at }), at.toRelativeCalendar({ base: next }), DateTime.local(2026, 11, 1, 1, 30, { zone: "America/New_York" }).toISO(), IANAZone.isValidZone("Nowhere/X"), Info.months("long", { locale: "en" }),
    Info.hasDST("Asia/Tokyo"), Interval.fromDateTimes(at, next).length("hours"), DateTime.fromFormat("March 3, 2026 at 4:05 PM", "MMMM d, yyyy 'at' h:mm a", { zone: "UTC", locale: "en" }).toISO(), Duration.fromObject({ hours: 3, minutes: 5 }).toFormat("hh:mm")];
};
