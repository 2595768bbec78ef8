import {
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readWhenStable } from "../../../../src/runtime/reload/apply-config.ts";
import { trialCount } from "../../../kit/law-effort.ts";

let folder: string;
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), "tollgate-settled-"))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const BEFORE = "providers: { demo: { use: demo } }\n";
const WHOLE = "providers: { demo: { use: demo } }\nmodels: { fast: [demo/echo] }\n";

/** Steps of a program that saves a file. */
const saves = (file: string): Record<string, readonly (() => void)[]> => {
  const write = (text: string) => () => writeFileSync(file, text);
  const beside = `${file}.swp`;
  return {
    "cut off, then written": [() => truncateSync(file), write(WHOLE)],
    "in pieces": [
      () => truncateSync(file),
      ...[20, 35, 50].map((end) => write(WHOLE.slice(0, end))),
      write(WHOLE),
    ],
    "written beside it, put in its place": [
      () => writeFileSync(beside, WHOLE),
      () => renameSync(beside, file),
    ],
    "taken away, then put back": [() => rmSync(file), write(WHOLE)],
    "the old one moved away first": [
      () => renameSync(file, `${file}~`),
      () => writeFileSync(beside, WHOLE),
      () => renameSync(beside, file),
    ],
  };
};

const reader = (file: string) => async () => {
  let text: string | undefined;
  try {
    text = readFileSync(file, "utf8");
  } catch {}
  return { sources: [file], text };
};

it("a file is read completely, before or after a save, however it is saved", async () => {
  const names = Object.keys(saves(""));
  let round = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...names),
      // Steps of the save before the read, and at each of its pauses. None: the writer has
      // finished.
      fc.integer({ min: 1, max: 3 }),
      fc.infiniteStream(fc.integer({ min: 1, max: 3 })),
      async (name, early, at) => {
        const file = join(folder, `${round++}.yaml`);
        writeFileSync(file, BEFORE);
        const steps = [...saves(file)[name]!];
        for (const step of steps.splice(0, early)) step();
        const pause = async () => {
          for (const step of steps.splice(0, at.next().value)) step();
        };
        const { text } = await readWhenStable(reader(file), [file], { sleep: pause });
        // Before: the watcher reports the rest. Missing: the reload is rejected, and the same
        // applies.
        const whole = [WHOLE, ...(/beside/.test(name) ? [BEFORE] : [])];
        expect(/moved/.test(name) ? [...whole, BEFORE, undefined] : whole, name).toContain(text);
      },
    ),
    { numRuns: trialCount(300) },
  );
});

it("an included file is read twice too", async () => {
  const [main, part] = [join(folder, "main.yaml"), join(folder, "part.yaml")];
  writeFileSync(main, "include: part.yaml\n");
  writeFileSync(part, "mod");
  let pauses = 0;
  const found = await readWhenStable(
    async () => ({ sources: [main, part], text: readFileSync(part, "utf8") }),
    [main],
    { sleep: async () => void (++pauses === 1 && writeFileSync(part, "models: {}\n")) },
  );
  expect([found.text, pauses]).toEqual(["models: {}\n", 2]);
});

it("a file that is written continuously is read eventually", async () => {
  const file = join(folder, "restless.yaml");
  writeFileSync(file, "0");
  let pauses = 0;
  const pause = async () => writeFileSync(file, `${++pauses}`);
  const { text } = await readWhenStable(reader(file), [file], {
    sleep: pause,
    stableMs: 50,
    maxWaitMs: 500,
  });
  expect([text, pauses]).toEqual(["9", 10]);
});
