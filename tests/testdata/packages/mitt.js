import mitt from "mitt";

export const run = () => { const e = mitt(), got = []; e.on("a", (v) => got.push(v)); e.emit("a", 1); return got; };
