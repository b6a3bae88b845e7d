import { TZDate, tzOffset } from "@date-fns/tz";
import { addDays, format } from "date-fns";

export const run = () => [new TZDate(2026, 2, 28, 12, "Europe/Berlin").toISOString(), format(addDays(new TZDate(2026, 2, 28, 12, "Europe/Berlin"), 1), "yyyy-MM-dd HH:mm xxx"),
  tzOffset("America/St_Johns", new Date(0)), tzOffset("Asia/Kolkata", new Date(0)), new TZDate("2026-11-01T06:30:00Z", "America/New_York").toString()];
