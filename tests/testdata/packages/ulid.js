import { decodeTime, ulid } from "ulid";

export const run = () => [ulid(1469918176385).slice(0, 10), decodeTime("01ARYZ6S41TSV4RRFFQ69G5FAV")];
