import slugify from "slugify";

export const run = () => slugify("Crème brûlée & Co.", { lower: true, strict: true });
