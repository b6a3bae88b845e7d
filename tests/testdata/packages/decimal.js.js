import Decimal from "decimal.js";

export const run = () => [new Decimal("0.1").plus("0.2").toString(), Decimal.sqrt(2).toFixed(30)];
