import BigNumber from "bignumber.js";

export const run = () => new BigNumber("123456789.987654321").times(1e9).toFormat(3);
