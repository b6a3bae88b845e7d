import Big from "big.js";

export const run = () => new Big("1").div(3).times("12.50").toFixed(4);
