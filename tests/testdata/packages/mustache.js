import Mustache from "mustache";

const rows = [{ name: "ada", age: 36 }, { name: "bo", age: 28 }];

export const run = () => Mustache.render("{{#rows}}{{name}} is {{age}}. {{/rows}}{{{html}}}{{html}}", { rows, html: "<i>" });
