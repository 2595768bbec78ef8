// A third-party provider: a package packed and installed next to a gateway.yaml outside of this
// repository, loaded by name, streaming and non-streaming; then broken in three ways, each reported
// with its line.
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startInProcess } from "../../kit/in-process.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../../..");

const PLUGIN = `
import { defineProvider, fail } from "tollgate/plugin";
export default defineProvider({
  api: API, name: "parrot", summary: "Says it again, louder",
  options: { type: "object", additionalProperties: false, properties: { loud: { type: "boolean", default: false, description: "In capitals" } } },
  setup: ({ loud }) => {
    SETUP
    return { endpoints: [{
      operation: "chat",
      async *run(r) {
        const said = r.turns.at(-1).blocks.map((b) => b.text ?? "").join("") || fail("invalid", "Say something.");
        yield { type: "start", id: "p1" };
        yield { type: "open", index: 0, block: { type: "text" } };
        for (const word of said.split(/(?<= )/)) yield { type: "delta", index: 0, text: loud ? word.toUpperCase() : word };
        yield { type: "close", index: 0 };
        yield { type: "usage", usage: { input: 2, output: 2 } };
        yield { type: "finish", reason: "stop" };
      },
    }], listModels: async () => [{ model: "grey", operation: "chat" }] };
  },
});
`;

let work: string;
beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), "stranger-"));
});
afterAll(() => rm(work, { recursive: true, force: true }));

/** Packs a variant of the plugin, and installs the tarball next to a future gateway.yaml. */
async function installed(name: string, change: { api?: string; setup?: string } = {}) {
  const source = join(work, `${name}-src`);
  const place = join(work, name);
  await mkdir(source, { recursive: true });
  await mkdir(join(place, "node_modules"), { recursive: true });
  await writeFile(
    join(source, "package.json"),
    JSON.stringify({
      name: "tollgate-provider-parrot",
      version: "1.2.3",
      type: "module",
      exports: "./index.js",
      peerDependencies: { tollgate: "*" },
    }),
  );
  await writeFile(
    join(source, "index.js"),
    PLUGIN.replace("API", change.api ?? "1").replace("SETUP", change.setup ?? ""),
  );
  const { stdout } = await run("npm", ["pack", "--silent", "--pack-destination", place], {
    cwd: source,
  });
  await writeFile(join(place, "package.json"), JSON.stringify({ name: "operator", private: true }));
  // The peer dependency is already installed, as next to a real gateway, so no registry is used.
  await symlink(ROOT, join(place, "node_modules/tollgate"));
  await run(
    "npm",
    ["install", "--no-save", "--legacy-peer-deps", "--offline", "--no-audit", `./${stdout.trim()}`],
    { cwd: place },
  );
  return place;
}

const yaml = (options = "") => `
frontends: [chat-completions]
providers:
  bird: { use: parrot${options} }
`;

const check = async (place: string, text: string) => {
  await writeFile(join(place, "gateway.yaml"), text);
  const done = await run(
    join(ROOT, "node_modules/.bin/node"),
    [
      "--conditions=tollgate-source",
      join(ROOT, "src/cli/bin.ts"),
      "check",
      "-c",
      "gateway.yaml",
      "--json",
    ],
    { cwd: place },
  ).catch((error: { code: number; stdout: string }) => error);
  const { problems } = JSON.parse(done.stdout) as { problems: any[] };
  return {
    code: (done as { code?: number }).code ?? 0,
    // A note reports that no lock file exists here.
    problems: problems.filter(({ severity }) => severity !== "note"),
  };
};

describe("a third party's provider", () => {
  it("is found by its conventional name, and responds, streaming and non-streaming", async () => {
    const dir = await installed("good");
    await using gateway = await startInProcess({ dir, yaml: yaml(", with: { loud: true }") });
    const ask = async (stream: boolean) => {
      const res = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${gateway.key}` },
        body: JSON.stringify({
          model: "bird/grey",
          stream,
          messages: [{ role: "user", content: "pretty polly" }],
        }),
      });
      return res.text();
    };
    expect(JSON.parse(await ask(false)).choices[0].message.content).toBe("PRETTY POLLY");
    const streamed = await ask(true);
    expect(streamed).toContain('"content":"PRETTY "');
    expect(streamed.trimEnd().endsWith("data: [DONE]")).toBe(true);
  });

  it("a misspelled option", async () => {
    const place = await installed("misspelt");
    const { code, problems } = await check(place, yaml(", with: { lowd: true }"));
    expect(code).toBe(1);
    expect(problems).toEqual([
      expect.objectContaining({
        id: "config/unknown-key",
        line: 4,
        column: 32,
        path: "providers.bird.with.lowd",
        hint: expect.stringContaining('"loud"'),
      }),
    ]);
  });

  it("another API version", async () => {
    const place = await installed("newer", { api: "2" });
    const { problems } = await check(place, yaml());
    expect(problems).toEqual([
      expect.objectContaining({
        id: "plugin/api-mismatch",
        line: 4,
        hint: "upgrade tollgate",
        message: expect.stringContaining("tollgate-provider-parrot"),
      }),
    ]);
  });

  it("a setup that throws an error", async () => {
    const place = await installed("throws", { setup: 'throw new Error("no seed left");' });
    const { problems } = await check(place, yaml());
    expect(problems).toEqual([
      expect.objectContaining({
        id: "plugin/setup-failed",
        line: 4,
        message: expect.stringContaining("no seed left"),
      }),
    ]);
  });
});
