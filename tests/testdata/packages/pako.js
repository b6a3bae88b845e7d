import { deflate, inflate } from "pako";

export const run = () => [[...deflate("hello hello hello")], new TextDecoder().decode(inflate(deflate("héllo")))];
