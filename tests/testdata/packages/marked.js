import { marked } from "marked";

export const run = () => marked.parse("# Title\n\n- *a*\n- `b`\n\n| x | y |\n|---|---|\n| 1 | 2 |\n");
