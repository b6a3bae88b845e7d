import MarkdownIt from "markdown-it";

export const run = () => new MarkdownIt({ linkify: true }).render("# Hi\n\n1. *a*\n2. https://a.example <b>");
