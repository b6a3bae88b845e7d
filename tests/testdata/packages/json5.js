import JSON5 from "json5";

export const run = () => [JSON5.parse("{a: 1, /* c */ b: [.5, +1,], 'c': 'x'}"), JSON5.stringify({ a: "b" })];
