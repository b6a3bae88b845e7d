import { from, lastValueFrom, map, reduce } from "rxjs";

export const run = () => lastValueFrom(from([1, 2, 3]).pipe(map((n) => n * 2), reduce((a, b) => a + b, 0)));
