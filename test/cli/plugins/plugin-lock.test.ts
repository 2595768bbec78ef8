// Installed files equal the accepted ones: byte for byte, including all dependencies, before any of
// their code runs.
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { isOlderVersion } from "../../../src/loader/validate-definition.ts";
import { createTestFolder, type TestFolder } from "../../kit/process/command-line.ts";
import { root } from "../../kit/process/program.ts";

/** It reports its import, so that a test can detect that it was not imported. */
const PLUGIN = `
import { defineProvider } from "tollgate/plugin";
import { word } from "parrot-words";
globalThis.parrotSeen = (globalThis.parrotSeen ?? 0) + 1;
export default defineProvider({
  api: 1, name: "parrot", summary: "Says one thing",
  needs: { env: ["PARROT_HOME"], metadata: true },
  setup: () => ({ endpoints: [{ kind: "chat", async *run() {
    yield { type: "start" };
    yield { type: "open", index: 0, block: { type: "text" } };
    yield { type: "delta", index: 0, text: word };
    yield { type: "close", index: 0 };
    yield { type: "finish", reason: "stop" };
  } }] }),
});`;

const FILES: Readonly<Record<string, string>> = {
  "node_modules/tollgate-provider-parrot/package.json": JSON.stringify({
    name: "tollgate-provider-parrot",
    version: "1.2.3",
    type: "module",
    exports: "./index.js",
    dependencies: { "parrot-words": "1.0.0" },
  }),
  "node_modules/tollgate-provider-parrot/index.js": PLUGIN,
  "node_modules/parrot-words/package.json": JSON.stringify({
    name: "parrot-words",
    version: "1.0.0",
    type: "module",
    exports: "./index.js",
    dependencies: { "parrot-deep": "^2.0.0" },
  }),
  "node_modules/parrot-words/index.js": 'export { word } from "parrot-deep";',
  "node_modules/parrot-deep/package.json": JSON.stringify({
    name: "parrot-deep",
    version: "2.0.1",
    type: "module",
    exports: "./index.js",
  }),
  "node_modules/parrot-deep/index.js": 'export const word = "Polly";',
  "package.json": JSON.stringify({ private: true, type: "module" }),
  "gateway.yaml": "providers:\n  bird: { use: parrot }\n",
};

async function house(yaml = FILES["gateway.yaml"]!): Promise<TestFolder> {
  const made = await createTestFolder();
  for (const [path, text] of Object.entries({ ...FILES, "gateway.yaml": yaml })) {
    mkdirSync(dirname(join(made.path, path)), { recursive: true });
    writeFileSync(join(made.path, path), text);
  }
  symlinkSync(root, join(made.path, "node_modules/tollgate"));
  return made;
}

const ADD = ["plugin", "add", "tollgate-provider-parrot", "--no-install"];
const DEEP = "node_modules/parrot-deep/index.js";

const check = async (at: TestFolder) => {
  const { code, out } = await at.said(["check", "--json"]);
  const { problems } = JSON.parse(out) as { problems: { id: string; message: string }[] };
  return { code, problems };
};

describe("a locked plugin", () => {
  it("is shown with its needs, locked, and mounted; one changed byte in a transitive dependency prevents the start", async () => {
    await using at = await house();
    const asked = await at.said(ADD);
    expect([asked.code, asked.err]).toEqual([1, expect.stringContaining("pass --yes")]);
    expect(asked.err).toContain("needs the cloud's metadata service, the variable PARROT_HOME");
    const added = await at.said([...ADD, "--yes"]);
    expect([added.code, added.out]).toEqual([0, expect.stringContaining("Locked ")]);
    const lock = readFileSync(join(at.path, "plugins.lock.yaml"), "utf8");
    for (const said of [
      "tollgate-provider-parrot@1.2.3:",
      "parrot-words@1.0.0:",
      "parrot-deep@2.0.1:",
    ])
      expect(lock).toContain(said);
    expect(await check(at)).toEqual({ code: 0, problems: [] });
    expect((await at.said(["plugin", "verify"])).code).toBe(0);

    const before = readFileSync(join(at.path, DEEP), "utf8");
    writeFileSync(join(at.path, DEEP), before.replace("Polly", "Pally"));
    expect(await check(at)).toEqual({
      code: 1,
      problems: [
        expect.objectContaining({
          id: "plugin/changed",
          line: 2,
          message:
            "tollgate-provider-parrot differs from the locked version: parrot-deep@2.0.1 has changed",
        }),
      ],
    });
    const started = await at.tollgate(["serve", "--port", "0"]);
    expect([started.code, started.err]).toEqual([
      78,
      expect.stringContaining("The gateway was not started"),
    ]);
    const verified = await at.said(["plugin", "verify"]);
    expect([verified.code, verified.out]).toEqual([
      1,
      expect.stringContaining("parrot-deep@2.0.1 has changed"),
    ]);

    writeFileSync(join(at.path, DEEP), before);
    expect((await check(at)).code).toBe(0);
  });

  it("is rejected if a package was added or removed", async () => {
    await using at = await house();
    await at.said([...ADD, "--yes"]);
    await at.write("node_modules/parrot-words/more.js", "export {};");
    expect((await check(at)).problems[0]!.message).toContain("parrot-words@1.0.0 has changed");
    await at.write(
      "node_modules/parrot-words/package.json",
      FILES["node_modules/parrot-words/package.json"]!.replace("parrot-deep", "parrot-deeper"),
    );
    expect((await check(at)).problems[0]!.message).toMatch(/parrot-deep@2\.0\.1 is gone/);
  });

  it("is rejected if the lock is unreadable or has another hash", async () => {
    await using at = await house();
    await at.write("plugins.lock.yaml", "plugins: [");
    expect((await check(at)).problems[0]!.id).toBe("plugin/lock-unreadable");
    await at.write("plugins.lock.yaml", "plugins: {}\n");
    expect((await check(at)).problems[0]!.id).toBe("plugin/not-locked");
  });
});

describe("a locked plugin whose declaration changed after it was accepted", () => {
  const SLY = PLUGIN.replace(
    '["PARROT_HOME"]',
    'process.env.PARROT_SLY?.split(",") ?? ["PARROT_HOME"]',
  );

  it.each([
    ["AWS_SECRET_ACCESS_KEY,PARROT_HOME", undefined, 1, "error"],
    ["AWS_SECRET_ACCESS_KEY", "warn", 0, "warning"],
    ["PARROT_HOME", undefined, 0, undefined],
  ])("%s, lock: %s", async (says, lock, code, severity) => {
    const yaml = FILES["gateway.yaml"]!;
    await using at = await house(lock ? `plugins: { lock: ${lock} }\n${yaml}` : yaml);
    await at.write("node_modules/tollgate-provider-parrot/index.js", SLY);
    expect((await at.said([...ADD, "--yes"])).code).toBe(0);
    const { code: is, out } = await at.tollgate(["check", "--json"], {
      env: { PARROT_SLY: says },
    });
    const { problems } = JSON.parse(out) as { problems: { message: string }[] };
    expect(is).toBe(code);
    expect(problems).toEqual(
      severity === undefined
        ? []
        : [
            expect.objectContaining({
              id: "plugin/changed",
              severity,
              message:
                "tollgate-provider-parrot differs from the locked version: it needs the variable AWS_SECRET_ACCESS_KEY",
            }),
          ],
    );
  });
});

describe("tollgate plugin remove", () => {
  it("removes a package from the lock and from the disk", async () => {
    await using at = await house();
    await at.said([...ADD, "--yes"]);
    const wrong = await at.said(["plugin", "remove", "tollgate-provider-parot"]);
    expect([wrong.code, wrong.err]).toEqual([
      1,
      expect.stringContaining('Did you mean "tollgate-provider-parrot"?'),
    ]);
    const { code, out } = await at.said(["plugin", "remove", "tollgate-provider-parrot", "--json"]);
    expect([code, JSON.parse(out)]).toEqual([0, { removed: "tollgate-provider-parrot" }]);
    expect(readFileSync(join(at.path, "plugins.lock.yaml"), "utf8")).not.toContain("parrot");
    expect(existsSync(join(at.path, "node_modules/tollgate-provider-parrot"))).toBe(false);
  });
});

describe("the packages in gateway.yaml", () => {
  const yaml = (said: string) => `plugins: ${said}\n${FILES["gateway.yaml"]}`;

  it.each([
    ["{ lock: required }", 1, ["plugin/not-locked"]],
    ["{ lock: warn }", 0, ["plugin/not-locked"]],
    ["{ lock: off }", 0, []],
    ["{ allow: [tollgate-provider-other] }", 1, ["plugin/not-allowed"]],
    ["{ allow: [tollgate-provider-parrot], lock: off }", 0, []],
    ["{ lock: maybe }", 1, ["config/not-one-of", "plugin/not-locked"]],
  ])("%s", async (said, code, ids) => {
    await using at = await house(yaml(said));
    const found = await check(at);
    expect([found.code, found.problems.map(({ id }) => id).sort()]).toEqual([code, ids]);
  });

  it("ignores a plugin that is a path", async () => {
    await using at = await house("plugins: { lock: required }\nproviders:\n  x: { use: ./x.ts }\n");
    await at.write(
      "x.ts",
      PLUGIN.replace('import { word } from "parrot-words";', 'const word = "x";'),
    );
    expect(await check(at)).toEqual({ code: 0, problems: [] });
  });
});

it.each([
  ["0.1.0", "0.1", false],
  ["0.1.0", "0.1.0", false],
  ["0.1.0", "0.2", true],
  ["1.10.0", "1.9", false],
  ["1.3.0-beta.1", "1.3", false],
  ["1.2.9", "1.3", true],
])("%s is older than %s: %s", (version, since, older) =>
  expect(isOlderVersion(version, since)).toBe(older),
);

it("a plugin that needs a newer gateway is rejected with the required version", async () => {
  await using at = await createTestFolder({
    "gateway.yaml": "providers:\n  x: { use: ./x.ts }\n",
    "x.ts": PLUGIN.replace('import { word } from "parrot-words";', 'const word = "x";').replace(
      "api: 1,",
      'api: 1, since: "99.1",',
    ),
  });
  const { problems } = await check(at);
  expect(problems[0]!.message).toMatch(/x\.ts requires Tollgate 99\.1 or newer; this is \d/);
});
