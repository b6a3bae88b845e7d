import pLimit from "p-limit";

export const run = async () => { const limit = pLimit(2); return Promise.all([1, 2, 3].map((n) => limit(async () => n * 2))); };
