// A summary of a list of values.

/** A summary of the values; there must be at least one. */
@json
export class Summary {
  count: i32 = 0;
  last: f64 = 0;
  least: f64 = 0;
  most: f64 = 0;
  mean: f64 = 0;
  median: f64 = 0;
  /** The standard deviation. */
  deviation: f64 = 0;

  constructor(values: f64[]) {
    const sorted = values.slice(0).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
    const n = sorted.length;
    this.count = n;
    this.last = values[n - 1];
    this.least = sorted[0];
    this.most = sorted[n - 1];
    this.median = n % 2 == 1 ? sorted[n / 2] : sorted[n / 2 - 1] / 2 + sorted[n / 2] / 2;
    // Mean and spread in one pass (Welford).
    let spread = 0.0;
    for (let i = 0; i < n; i++) {
      const away = sorted[i] - this.mean;
      this.mean += away / (i + 1);
      spread += away * (sorted[i] - this.mean);
    }
    this.deviation = Math.sqrt(spread / n);
  }
}
