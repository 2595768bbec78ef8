// A rig whose planted line no longer exists finds nothing, which only the nightly run would show.
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "../../..");
const TEXT = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`/.source;
const PLANT = new RegExp(`\\bin: (${TEXT}),\\s*line: (${TEXT}),\\s*instead:`, "g");

/** The value of a literal in the source. */
const meant = (literal: string): string =>
  literal.slice(1, -1).replace(/\\(.)/g, (_, letter: string) => (letter === "n" ? "\n" : letter));

const plants = globSync("test/rig/**/*.ts", { cwd: root }).flatMap((rig) =>
  [...readFileSync(join(root, rig), "utf8").matchAll(PLANT)].map(([, file, line]) => ({
    rig,
    file: meant(file!),
    line: meant(line!),
  })),
);

it("defects are planted by several rigs", () => {
  expect(new Set(plants.map(({ rig }) => rig)).size).toBeGreaterThanOrEqual(8);
});

it.each(plants)(
  "$rig: the line that it changes in $file is there once: $line",
  ({ file, line }) => {
    const path = join(root, file.startsWith("plugins/") ? file : `src/${file}`);
    expect(existsSync(path), path).toBe(true);
    expect(readFileSync(path, "utf8").split(line)).toHaveLength(2);
  },
);
