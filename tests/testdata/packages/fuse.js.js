import Fuse from "fuse.js";

export const run = () => new Fuse(["apple", "orange", "banana"], { includeScore: true }).search("aple").map((r) => r.item);
