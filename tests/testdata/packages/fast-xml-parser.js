import { XMLBuilder, XMLParser } from "fast-xml-parser";

export const run = () => [new XMLParser({ ignoreAttributes: false }).parse("<a x='1'><b>2</b><b>é</b></a>"), new XMLBuilder().build({ a: { b: [1, 2] } })];
