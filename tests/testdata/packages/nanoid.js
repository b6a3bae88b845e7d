import { customAlphabet } from "nanoid";

export const run = () => { const id = customAlphabet("ab", 20)(); return [id.length, /^[ab]+$/.test(id)]; };
