import ms from "ms";

export const run = () => [ms("2 days"), ms(90000, { long: true })];
