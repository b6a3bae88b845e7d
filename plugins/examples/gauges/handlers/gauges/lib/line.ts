// A line through values, as a picture (SVG).

const width = 240;
const height = 60;
const margin = 4;

/** A picture of a line through the values; there must be at least one. */
export function drawn(name: string, values: f64[]): string {
  let least = values[0];
  let most = values[0];
  for (let i = 1; i < values.length; i++) {
    least = Math.min(least, values[i]);
    most = Math.max(most, values[i]);
  }
  const points: string[] = [];
  for (let i = 0; i < values.length; i++) {
    const x = values.length == 1 ? 0.5 : <f64>i / (values.length - 1);
    // Halves, because the difference of two numbers can be infinite.
    const y = most > least ? (values[i] / 2 - least / 2) / (most / 2 - least / 2) : 0.5;
    points.push(place(x, width) + "," + place(1 - y, height));
  }
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width.toString()} ${height.toString()}">` +
    `<title>${escaped(name)}</title>` +
    `<polyline fill="none" stroke="currentColor" stroke-width="2" points="${points.join(" ")}"/></svg>\n`
  );
}

/** The position of a share of a length between the margins, to a tenth. */
function place(share: f64, length: i32): string {
  const tenths = <i32>Math.round((margin + share * (length - 2 * margin)) * 10);
  return (tenths / 10).toString() + (tenths % 10 == 0 ? "" : "." + (tenths % 10).toString());
}

/** A text escaped for XML. */
function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
