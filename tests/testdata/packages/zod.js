import { z } from "zod";

export const run = () => z.object({ name: z.string().min(3), age: z.coerce.number() }).safeParse({ name: "bo", age: "7" }).error.issues.map((i) => [i.path, i.message]);
