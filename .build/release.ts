// Checks a release: the tag must be the version, and the changelog must have an entry for it with a
// date. Extracts that entry's text. Runs before anything is installed, so it must run on a plain
// Node.js.
import { readFileSync, writeFileSync } from "node:fs";

const at = (path: string) => new URL(`../${path}`, import.meta.url);
interface Manifest {
  readonly version: string;
  readonly private?: boolean;
  readonly workspaces?: readonly string[];
}

const read = (path: string) => JSON.parse(readFileSync(at(path), "utf8")) as Manifest;

/**
 * Returns the manifests of all published packages: the main package, and all packages in the
 * repository that are not private.
 */
export const published = (): readonly string[] => [
  "package.json",
  ...(read("package.json").workspaces ?? [])
    .map((folder) => `${folder}/package.json`)
    .filter((path) => !read(path).private),
];

/** Returns the text of a version's entry, and the rest of its heading. */
export function entryOf(
  changelog: string,
  version: string,
): { readonly when: string; readonly text: string } | undefined {
  const [, ...entries] = changelog.split(/^## /m);
  const entry = entries.find((one) => one.startsWith(`[${version}]`));
  if (entry === undefined) return undefined;
  const [heading = "", ...lines] = entry.split("\n");
  return {
    when: heading.slice(version.length + 2).replace(/^ - /, ""),
    text: lines.join("\n").trim(),
  };
}

/** Returns the reasons why a release under this tag is not possible. */
export function flaws(of: {
  readonly tag: string;
  readonly versions: readonly string[];
  readonly chart: string | undefined;
  readonly changelog: string;
}): readonly string[] {
  const { tag, versions, chart, changelog } = of;
  const [version = ""] = versions;
  const entry = entryOf(changelog, version);
  return [
    ...(tag === `v${version}` ? [] : [`The tag is ${tag}, and package.json says ${version}.`]),
    ...(versions.every((each) => each === version)
      ? []
      : [`The packages have different versions: ${versions.join(", ")}.`]),
    ...(chart === version ? [] : [`The chart is of ${chart}, and package.json says ${version}.`]),
    ...(entry && entry.text !== "" ? [] : [`CHANGELOG.md has no entry for ${version}.`]),
    ...(entry && !/^\d{4}-\d\d-\d\d$/.test(entry.when)
      ? [`The entry of ${version} in CHANGELOG.md has no date: "## [${version}] - 2027-01-31".`]
      : []),
  ];
}

if (import.meta.main) {
  const [, , what, word = ""] = process.argv;
  const changelog = readFileSync(at("CHANGELOG.md"), "utf8");
  const versions = published().map((path) => read(path).version);
  if (what === "check") {
    const chart = /^appVersion: "(.*)"$/m.exec(
      readFileSync(at("deploy/chart/Chart.yaml"), "utf8"),
    )?.[1];
    const found = flaws({ tag: word, versions, chart, changelog });
    for (const flaw of found) console.error(flaw);
    process.exitCode = found.length === 0 ? 0 : 1;
  } else if (what === "notes") console.log(entryOf(changelog, word.slice(1))?.text);
  else if (what === "repository")
    for (const path of published()) {
      const directory = path.replace(/\/?package\.json$/, "");
      const repository = { type: "git", url: `git+${word}.git`, ...(directory && { directory }) };
      writeFileSync(at(path), `${JSON.stringify({ ...read(path), repository }, undefined, 2)}\n`);
    }
  else process.exitCode = 2;
}
