import nunjucks from "nunjucks";

export const run = () => new nunjucks.Environment().renderString("{% for r in rows %}{{ r | upper }} {% endfor %}{{ html }}", { rows: ["a", "b"], html: "<b>" });
