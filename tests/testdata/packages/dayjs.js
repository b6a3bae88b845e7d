import dayjs from "dayjs";
import timezone from "dayjs/plugin/timezone.js";
import utc from "dayjs/plugin/utc.js";

dayjs.extend(utc);
dayjs.extend(timezone);

export const run = () => [dayjs("2026-01-31T10:00:00Z").add(1, "month").toISOString(), dayjs("2026-05-05").format("dddd, D MMM YYYY"),
  dayjs.tz("2026-03-29 03:30", "Europe/Berlin").toISOString(), dayjs.utc("2026-07-01T12:00:00Z").tz("America/New_York").format("YYYY-MM-DD HH:mm Z z"), dayjs.tz.guess()];
