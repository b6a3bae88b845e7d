import Joi from "joi";

export const run = () => Joi.object({ age: Joi.number().min(30), email: Joi.string().email({ tlds: false }) }).validate({ age: 1, email: "x" }, { abortEarly: false }).error.details.map((d) => d.message);
