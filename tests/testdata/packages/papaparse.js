import Papa from "papaparse";

const rows = [{ name: "ada", age: 36 }, { name: "bo", age: 28 }];

export const run = () => [Papa.parse('name,age\n"a,da",36\nbo,28\n', { header: true, dynamicTyping: true, skipEmptyLines: true }).data, Papa.unparse(rows)];
