import pluralize from "pluralize";

export const run = () => [pluralize("city", 2, true), pluralize.singular("mice")];
