import bcrypt from "bcryptjs";

export const run = () => [bcrypt.hashSync("secret", "$2b$04$abcdefghijklmnopqrstuu"), bcrypt.compareSync("other", bcrypt.hashSync("secret", 4))];
