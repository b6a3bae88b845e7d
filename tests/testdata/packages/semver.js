import semver from "semver";

export const run = () => [semver.satisfies("1.2.3", "^1.0.0"), semver.sort(["2.0.0", "1.10.0", "1.9.0"]), semver.inc("1.2.3", "minor")];
