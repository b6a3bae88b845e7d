// Runs the cases of a file, in a handler and in Node.js.

const told = (key, value) => (value === undefined ? "undefined" : typeof value === "bigint" ? `${value}n` : value);

export async function run(cases) {
  const lines = [];
  for (const [name, does] of Object.entries(cases)) {
    try {
      lines.push(`${name}: ${JSON.stringify(await does(), told)}`);
    } catch (error) {
      lines.push(`${name}: throws ${error.name} ${error.code} ${error.message}`);
    }
  }
  return lines;
}
