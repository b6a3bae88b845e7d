import lodash from "lodash";

const rows = [{ name: "ada", age: 36 }, { name: "bo", age: 28 }];

export const run = () => [lodash.groupBy(rows, (r) => r.age > 30), lodash.debounce.name !== "", lodash.template("<%= a %>!")({ a: 1 }), lodash.cloneDeep(rows), lodash.camelCase("one two-three")];
