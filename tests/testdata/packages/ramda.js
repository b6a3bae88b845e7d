import * as R from "ramda";

const rows = [{ name: "ada", age: 36 }, { name: "bo", age: 28 }];

export const run = () => R.pipe(R.filter((r) => r.age > 30), R.pluck("name"))(rows);
