// Call classes and model types in gateway.yaml: one list validates every place, and a wrong name is
// an error at its key.
import { describe, expect, it } from "vitest";
import { startDryRun } from "../../../src/server/dry-run.ts";
import { loadGatewayConfig, quietLog } from "../../../src/cli/support/load-config.ts";
import { BUILT_IN_OPERATIONS } from "../../../src/model/operations/built-in-operations.ts";
import { createTestFolder } from "../../kit/process/command-line.ts";

/** Every place of a class. `at`: line and column of the name. */
const PLACES = {
  "timeouts.classes": {
    yaml: (name: string) => `timeouts:\n  classes:\n    ${name}: { total: 5s }\n`,
    at: [3, 5],
  },
  "a provider's timeouts.classes": {
    yaml: (name: string) =>
      `providers:\n  demo:\n    use: demo\n    timeouts:\n      classes:\n        ${name}: { total: 5s }\n`,
    at: [6, 9],
  },
  hedge: {
    yaml: (name: string) =>
      `models:\n  fast:\n    candidates: [demo/echo, demo/think]\n    hedge: { ${name}: 5s }\n`,
    at: [4, 14],
  },
};
const NAMES = [
  "quick",
  "reasoning",
  ...[...BUILT_IN_OPERATIONS.keys()].filter((kind) => kind !== "chat"),
];

async function problemsOf(yaml: string) {
  const providers = /^providers:/m.test(yaml) ? "" : "providers: { demo: { use: demo } }\n";
  await using at = await createTestFolder({ "gateway.yaml": `${yaml}${providers}` });
  const loaded = await loadGatewayConfig(`${at.path}/gateway.yaml`);
  if (!loaded.config) return loaded.problems;
  const made = await startDryRun({ loaded, config: loaded.config, ...quietLog() });
  if ("problems" in made) return made.problems;
  await made[Symbol.asyncDispose]();
  return [];
}

describe.each(Object.entries(PLACES))("%s", (_name, { yaml, at }) => {
  it("accepts every class of a call", async () => {
    for (const name of NAMES) expect(await problemsOf(yaml(name)), name).toEqual([]);
  });

  it.each([
    ["quik", "quick"],
    ["reasonng", "reasoning"],
    ["images", "image"],
    ["embeding", "embedding"],
  ])("rejects %s at its key and names %s", async (wrong, right) => {
    expect(await problemsOf(yaml(wrong))).toMatchObject([
      {
        id: "config/unknown-class",
        severity: "error",
        message: `unknown call class "${wrong}"`,
        hint: `did you mean "${right}"?`,
        line: at[0],
        column: at[1],
      },
    ]);
  });

  it.each(["chat", "hedge"])(
    "rejects %s, which is not a class, and lists the classes",
    async (wrong) => {
      const [found] = await problemsOf(yaml(wrong));
      expect(found).toMatchObject({ id: "config/unknown-class", line: at[0], column: at[1] });
      for (const name of NAMES) expect(found!.hint).toContain(name);
    },
  );
});

it("an unknown model type is an error with its location", async () => {
  const yaml = "providers:\n  demo:\n    use: demo\n    models:\n      x: { operation: imgae }\n";
  expect(await problemsOf(yaml)).toMatchObject([
    {
      id: "config/unknown-kind",
      line: 5,
      column: 23,
      hint: 'did you mean "image"?',
    },
  ]);
});
