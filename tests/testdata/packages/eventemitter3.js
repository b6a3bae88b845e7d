import EventEmitter from "eventemitter3";

export const run = () => { const e = new EventEmitter(), got = []; e.once("a", (...v) => got.push(v)); return [e.emit("a", 1, 2), e.emit("a"), got]; };
