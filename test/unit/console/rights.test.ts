// The console's pages offer what the session allows: each command of a page is guarded by
// `isAllowed`, or is requested by `useQuery`, which skips forbidden commands.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { COMMAND_SPECS } from "../../../src/admin/schema/command-specs.ts";

const WEB = join(import.meta.dirname, "../../../plugins/observers/console/web");
const SOURCES = globSync("**/*.ts", { cwd: WEB }).map((file) => [
  file,
  readFileSync(join(WEB, file), "utf8"),
]) as readonly (readonly [file: string, text: string])[];
const ALL = SOURCES.map(([, text]) => text).join("\n");

/** The first argument of each call of a function: "useCommand<CreatedKey>("keys.create")". */
const commandsIn = (text: string, call: string): string[] =>
  [...text.matchAll(new RegExp(`\\b${call}(?:<[^()]*>)?\\(\\s*"([a-z.]+)"`, "g"))].map(
    ([, name]) => name!,
  );

/** The requirements of a page are those in the list of pages. */
const NEEDED = new Set(
  [...ALL.matchAll(/requiredCommands: \[([^\]]*)\]/g)].flatMap(([, list]) =>
    [...list!.matchAll(/"([a-z.]+)"/g)].map(([, name]) => name!),
  ),
);

it("each button is shown only if the user may run its command", () => {
  const open: string[] = [];
  let seen = 0;
  for (const [file, text] of SOURCES)
    for (const name of [...commandsIn(text, "useCommand"), ...commandsIn(text, "runCommand")]) {
      seen++;
      if (!ALL.includes(`isAllowed("${name}")`) && !NEEDED.has(name)) open.push(`${file}: ${name}`);
    }
  expect(open).toEqual([]);
  expect(seen).toBeGreaterThan(15);
});

it("each page names commands that exist", () => {
  expect(NEEDED.size).toBeGreaterThan(8);
  for (const name of NEEDED) expect(Object.keys(COMMAND_SPECS)).toContain(name);
});
