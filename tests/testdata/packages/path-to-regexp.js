import { compile, match } from "path-to-regexp";

export const run = () => [match("/a/:id{/*rest}")("/a/7/x/y"), compile("/a/:id")({ id: "é" })];
