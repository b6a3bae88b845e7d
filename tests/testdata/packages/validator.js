import validator from "validator";

export const run = () => [validator.isEmail("a@b.example"), validator.isIBAN("DE89370400440532013000"), validator.escape("<a>")];
