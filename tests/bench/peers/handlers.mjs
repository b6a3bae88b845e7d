// What the guests' handlers answer (tests/bench/guests), for the servers that the runner is
// compared with.

export const hello = () => JSON.stringify({ message: "hello" });

export function hundred(body) {
  const rows = JSON.parse(body);
  for (const row of rows) row.total = row.qty * row.price;
  return JSON.stringify(rows);
}
