import ini from "ini";

export const run = () => [ini.parse("a=1\n[b]\nc=x y\n"), ini.stringify({ b: { c: 1 } })];
