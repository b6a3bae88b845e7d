// The difference of two texts, by lines (E. Myers, An O(ND) Difference Algorithm, 1986).

const context = 3; // lines around a change
const mostEdits = 400; // beyond them, a difference is of no use to a reader

/** Lines with "- " are expected, with "+ " received, with "  " in both. */
export function diff(expected: string, received: string): string {
  const a = expected.split("\n");
  const b = received.split("\n");
  const edits = script(a, b) ?? [...a.map((line) => `- ${line}`), ...b.map((line) => `+ ${line}`)];
  return shortened(edits).join("\n");
}

/** The shortest way from one list to the other; undefined if it is long. */
function script(a: string[], b: string[]): string[] | undefined {
  let ends = new Map<number, number>([[1, 0]]); // by diagonal x-y, how far x comes
  const trace: Map<number, number>[] = [];
  for (let d = 0; d <= Math.min(a.length + b.length, mostEdits); d++) {
    trace.push(new Map(ends));
    for (let k = -d; k <= d; k += 2) {
      let x = down(ends, k, d) ? ends.get(k + 1)! : ends.get(k - 1)! + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      ends.set(k, x);
      if (x >= a.length && x - k >= b.length) return back(a, b, trace);
    }
  }
  return undefined;
}

const down = (ends: Map<number, number>, k: number, d: number) => k === -d || (k !== d && ends.get(k - 1)! < ends.get(k + 1)!);

function back(a: string[], b: string[], trace: Map<number, number>[]): string[] {
  const edits: string[] = [];
  let x = a.length;
  let y = b.length;
  for (let d = trace.length - 1; d >= 0; d--) {
    const ends = trace[d];
    const k = x - y;
    const before = down(ends, k, d) ? k + 1 : k - 1;
    const fromX = d === 0 ? 0 : ends.get(before)!;
    const fromY = d === 0 ? 0 : fromX - before;
    while (x > fromX && y > fromY) {
      edits.push(`  ${a[--x]}`);
      y--;
    }
    if (d > 0) edits.push(x === fromX ? `+ ${b[--y]}` : `- ${a[--x]}`);
  }
  return edits.reverse();
}

/** Without the lines that are far from a change. */
function shortened(edits: string[]): string[] {
  const near = edits.map((_, i) => edits.slice(Math.max(0, i - context), i + context + 1).some((edit) => !edit.startsWith("  ")));
  const lines: string[] = [];
  for (let i = 0; i < edits.length; i++) {
    const alone = !near[i] && (near[i - 1] ?? true) && (near[i + 1] ?? true); // as long as what would stand for it
    if (near[i] || alone) lines.push(edits[i]);
    else if (i === 0 || near[i - 1]) lines.push("  …");
  }
  return lines;
}
