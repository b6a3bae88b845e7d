import jmespath from "jmespath";

export const run = () => jmespath.search({ rows: [{ a: 1 }, { a: 5 }] }, "rows[?a > `2`].a");
