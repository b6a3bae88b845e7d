import * as dates from "date-fns";

export const run = () => [dates.formatISO(dates.addMonths(new Date(Date.UTC(2026, 0, 31)), 1), { representation: "date" }), dates.differenceInDays(new Date("2026-03-01"), new Date("2026-02-01"))];
