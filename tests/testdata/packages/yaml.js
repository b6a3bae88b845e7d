import YAML from "yaml";

const rows = [{ name: "ada", age: 36 }, { name: "bo", age: 28 }];

export const run = () => [YAML.parse("a: 1\nb:\n  - x\n  - {y: [1, 2]}\nc: |\n  text\n  more\n"), YAML.stringify({ rows })];
