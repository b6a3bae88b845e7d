import Handlebars from "handlebars";

const rows = [{ name: "ada", age: 36 }, { name: "bo", age: 28 }];

export const run = () => Handlebars.compile("{{#each rows}}{{upper name}}:{{age}} {{/each}}{{{raw}}}{{safe}}")({ rows, raw: "<b>", safe: "<b>" }, { helpers: { upper: (s) => s.toUpperCase() } });
