import { camelCase, kebabCase } from "change-case";

export const run = () => [camelCase("some text here"), kebabCase("someTextHere")];
