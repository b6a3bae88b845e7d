import * as v from "valibot";

export const run = () => v.safeParse(v.object({ email: v.pipe(v.string(), v.email()), n: v.number() }), { email: "x", n: "1" }).issues.map((i) => i.message);
