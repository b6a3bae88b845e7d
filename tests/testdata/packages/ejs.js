import ejs from "ejs";

export const run = () => ejs.render("<% for (const r of rows) { %><%= r %>,<% } %>", { rows: ["<a>", "b"] });
