import dayjs from "dayjs";

export const run = () => [dayjs("2026-01-31T10:00:00Z").add(1, "month").toISOString(), dayjs("2026-05-05").format("dddd, D MMM YYYY")];
